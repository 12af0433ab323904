"""What only research needs: baselines, reproduction of the paper, sweeps, jobs on a cluster."""
