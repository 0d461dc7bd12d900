"""What the commands do: a module for each, imported when its command runs. The module with the same name in `gitsched.cli` has its
options."""
