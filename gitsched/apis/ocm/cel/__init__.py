"""The Common Expression Language, as far as predicates need it: parsed, checked, and evaluated in counted steps.

An evaluator of our own: the libraries at hand set no limit to what an expression may cost, and one that does not end would hold up
every reconcile. Here every step is counted, regular expressions included.
"""
