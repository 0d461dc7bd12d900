"""Kinds of database operators that describe their volumes with fields of their own, without templates of claims."""

from __future__ import annotations

from collections.abc import Mapping

STORAGE: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("acid.zalan.do", "postgresql"): ("spec.volume",),
    ("k8s.mariadb.com", "MariaDB"): ("spec.storage",),
    ("kafka.strimzi.io", "Kafka"): ("spec.kafka.storage", "spec.zookeeper.storage"),
    ("kafka.strimzi.io", "KafkaNodePool"): ("spec.storage",),
    ("kafka.strimzi.io", "KafkaTopic"): (),
    ("postgresql.cnpg.io", "Cluster"): ("spec.storage", "spec.walStorage"),
    ("postgresql.cnpg.io", "Database"): (),
    ("rabbitmq.com", "RabbitmqCluster"): ("spec.persistence",),
}
"""The objects with the size and the storage class by group and kind. An object of these kinds has data also where it has none of them,
unless it says that its storage is ephemeral.

Sources: zalando/postgres-operator/manifests/postgresql.crd.yaml, mariadb-operator/mariadb-operator/config/crd/bases,
strimzi/strimzi-kafka-operator/packaging/install/cluster-operator, cloudnative-pg/cloudnative-pg/config/crd/bases,
rabbitmq/cluster-operator/config/crd/bases.
"""
