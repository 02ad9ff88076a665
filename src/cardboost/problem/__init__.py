"""What is minimised: losses, the risk over rows, prices and limits, the bound, and the time it may take."""
