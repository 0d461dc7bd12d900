"""Update the last plan where documents changed, instead of making a complete plan."""
