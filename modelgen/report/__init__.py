"""A robot as text, pages and animations."""
