"""What watches value iteration: settings, schedule, choice of V, polish, checkpoints and run folders."""
