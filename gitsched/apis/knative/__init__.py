"""Knative Eventing's vreplica scheduler: event sources become vpods, placed on the pods of one StatefulSet."""
