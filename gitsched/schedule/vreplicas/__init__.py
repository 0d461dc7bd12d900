"""Virtual replicas of event sources on the pods of one StatefulSet: filter, score, one vreplica at a time."""
