"""Properties that must hold on the whole domain of a robot: collected as guards, searched for violations, proven."""
