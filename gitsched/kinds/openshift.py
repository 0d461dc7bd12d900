"""Kinds that configure the clusters of OpenShift."""

from __future__ import annotations

from gitsched.kinds.kind import CLUSTER, NAMESPACED, Kind, KindTable

KINDS: KindTable = {
    ("config.openshift.io", "APIServer"): Kind(
        CLUSTER, "openshift/api/payload-manifests/crds/0000_10_config-operator_01_apiservers-OKD.crd.yaml"
    ),
    ("config.openshift.io", "Authentication"): Kind(
        CLUSTER, "openshift/api/payload-manifests/crds/0000_10_config-operator_01_authentications-OKD.crd.yaml"
    ),
    ("config.openshift.io", "Backup"): Kind(
        CLUSTER, "openshift/api/payload-manifests/crds/0000_10_config-operator_01_backups.crd.yaml"
    ),
    ("config.openshift.io", "Build"): Kind(
        CLUSTER, "openshift/api/payload-manifests/crds/0000_10_openshift-controller-manager_01_builds.crd.yaml"
    ),
    ("config.openshift.io", "CRIOCredentialProviderConfig"): Kind(
        CLUSTER,
        "openshift/api/payload-manifests/crds/0000_10_config-operator_01_criocredentialproviderconfigs-SelfManagedHA.crd.yaml",
    ),
    ("config.openshift.io", "ClusterImagePolicy"): Kind(
        CLUSTER, "openshift/api/payload-manifests/crds/0000_10_config-operator_01_clusterimagepolicies.crd.yaml"
    ),
    ("config.openshift.io", "ClusterMonitoring"): Kind(
        CLUSTER, "openshift/api/payload-manifests/crds/0000_10_config-operator_01_clustermonitorings.crd.yaml"
    ),
    ("config.openshift.io", "Console"): Kind(
        CLUSTER, "openshift/api/payload-manifests/crds/0000_10_config-operator_01_consoles.crd.yaml"
    ),
    ("config.openshift.io", "DNS"): Kind(
        CLUSTER, "openshift/api/payload-manifests/crds/0000_10_config-operator_01_dnses-OKD.crd.yaml"
    ),
    ("config.openshift.io", "FeatureGate"): Kind(
        CLUSTER, "openshift/api/payload-manifests/crds/0000_10_config-operator_01_featuregates.crd.yaml"
    ),
    ("config.openshift.io", "Image"): Kind(
        CLUSTER, "openshift/api/payload-manifests/crds/0000_10_config-operator_01_images.crd.yaml"
    ),
    ("config.openshift.io", "ImageContentPolicy"): Kind(
        CLUSTER, "openshift/api/payload-manifests/crds/0000_10_config-operator_01_imagecontentpolicies.crd.yaml"
    ),
    ("config.openshift.io", "ImageDigestMirrorSet"): Kind(
        CLUSTER, "openshift/api/payload-manifests/crds/0000_10_config-operator_01_imagedigestmirrorsets.crd.yaml"
    ),
    ("config.openshift.io", "ImagePolicy"): Kind(
        NAMESPACED, "openshift/api/payload-manifests/crds/0000_10_config-operator_01_imagepolicies.crd.yaml"
    ),
    ("config.openshift.io", "ImageTagMirrorSet"): Kind(
        CLUSTER, "openshift/api/payload-manifests/crds/0000_10_config-operator_01_imagetagmirrorsets.crd.yaml"
    ),
    ("config.openshift.io", "Infrastructure"): Kind(
        CLUSTER, "openshift/api/payload-manifests/crds/0000_10_config-operator_01_infrastructures-OKD.crd.yaml"
    ),
    ("config.openshift.io", "Ingress"): Kind(
        CLUSTER, "openshift/api/payload-manifests/crds/0000_10_config-operator_01_ingresses-OKD.crd.yaml"
    ),
    ("config.openshift.io", "InsightsDataGather"): Kind(
        CLUSTER, "openshift/api/payload-manifests/crds/0000_10_config-operator_01_insightsdatagathers.crd.yaml"
    ),
    ("config.openshift.io", "Network"): Kind(
        CLUSTER, "openshift/api/payload-manifests/crds/0000_10_config-operator_01_networks-OKD.crd.yaml"
    ),
    ("config.openshift.io", "Node"): Kind(
        CLUSTER, "openshift/api/payload-manifests/crds/0000_10_config-operator_01_nodes-OKD.crd.yaml"
    ),
    ("config.openshift.io", "OAuth"): Kind(
        CLUSTER, "openshift/api/payload-manifests/crds/0000_10_config-operator_01_oauths.crd.yaml"
    ),
    ("config.openshift.io", "PKI"): Kind(CLUSTER, "openshift/api/payload-manifests/crds/0000_10_config-operator_01_pkis.crd.yaml"),
    ("config.openshift.io", "Project"): Kind(
        CLUSTER, "openshift/api/payload-manifests/crds/0000_10_config-operator_01_projects.crd.yaml"
    ),
    ("config.openshift.io", "Proxy"): Kind(
        CLUSTER, "openshift/api/payload-manifests/crds/0000_03_config-operator_01_proxies.crd.yaml"
    ),
    ("config.openshift.io", "Scheduler"): Kind(
        CLUSTER, "openshift/api/payload-manifests/crds/0000_10_config-operator_01_schedulers-SelfManagedHA-OKD.crd.yaml"
    ),
    ("machineconfiguration.openshift.io", "ContainerRuntimeConfig"): Kind(
        CLUSTER, "openshift/api/payload-manifests/crds/0000_80_machine-config_01_containerruntimeconfigs-OKD.crd.yaml"
    ),
    ("machineconfiguration.openshift.io", "ControllerConfig"): Kind(
        CLUSTER, "openshift/api/payload-manifests/crds/0000_80_machine-config_01_controllerconfigs-OKD.crd.yaml"
    ),
    ("machineconfiguration.openshift.io", "InternalReleaseImage"): Kind(
        CLUSTER, "openshift/api/payload-manifests/crds/0000_80_machine-config_01_internalreleaseimages-SelfManagedHA.crd.yaml"
    ),
    ("machineconfiguration.openshift.io", "KubeletConfig"): Kind(
        CLUSTER, "openshift/api/payload-manifests/crds/0000_80_machine-config_01_kubeletconfigs-OKD.crd.yaml"
    ),
    ("machineconfiguration.openshift.io", "MachineConfig"): Kind(
        CLUSTER, "openshift/api/payload-manifests/crds/0000_80_machine-config_01_machineconfigs.crd.yaml"
    ),
    ("machineconfiguration.openshift.io", "MachineConfigNode"): Kind(
        CLUSTER, "openshift/api/payload-manifests/crds/0000_80_machine-config_01_machineconfignodes-SelfManagedHA-OKD.crd.yaml"
    ),
    ("machineconfiguration.openshift.io", "MachineConfigPool"): Kind(
        CLUSTER, "openshift/api/payload-manifests/crds/0000_80_machine-config_01_machineconfigpools.crd.yaml"
    ),
    ("machineconfiguration.openshift.io", "MachineOSBuild"): Kind(
        CLUSTER, "openshift/api/payload-manifests/crds/0000_80_machine-config_01_machineosbuilds.crd.yaml"
    ),
    ("machineconfiguration.openshift.io", "MachineOSConfig"): Kind(
        CLUSTER, "openshift/api/payload-manifests/crds/0000_80_machine-config_01_machineosconfigs.crd.yaml"
    ),
    ("machineconfiguration.openshift.io", "OSImageStream"): Kind(
        CLUSTER, "openshift/api/payload-manifests/crds/0000_80_machine-config_01_osimagestreams.crd.yaml"
    ),
    ("machineconfiguration.openshift.io", "PinnedImageSet"): Kind(
        CLUSTER, "openshift/api/payload-manifests/crds/0000_80_machine-config_01_pinnedimagesets.crd.yaml"
    ),
    ("security.openshift.io", "SecurityContextConstraints"): Kind(
        CLUSTER, "openshift/api/payload-manifests/crds/0000_03_config-operator_01_securitycontextconstraints.crd.yaml"
    ),
}
