"""Functional Mock-up Units (FMI 2.0 and 3.0): a zip file of a description in XML, machine code and its C sources."""
