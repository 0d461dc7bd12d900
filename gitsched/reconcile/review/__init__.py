"""What people review before a run writes it: comparisons, explanations and simulations."""
