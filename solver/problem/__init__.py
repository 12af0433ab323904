"""The nominal robot and its task on a device."""
