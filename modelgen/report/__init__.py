"""A robot as text and pictures for a person."""
