"""A Common Expression Language (CEL) evaluator with the Kubernetes libraries, for Placement predicates: parser, type checker, interpreter.

Available CEL libraries for Python have no cost limit, so an expensive expression could block every reconcile. Here each evaluation step
counts toward a limit, regular expressions included.
"""
