"""Reports of plans, explanations, simulations and findings: text, Markdown, HTML, JSON, SARIF and JUnit. Pure functions."""
