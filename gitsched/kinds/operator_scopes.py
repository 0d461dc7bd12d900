"""The scopes of kinds of operators about which gitsched knows nothing else, as their CustomResourceDefinitions have them."""

from __future__ import annotations

_CLUSTER_SCOPED = {
    "cdi.kubevirt.io": "CDI CDIConfig StorageProfile",
    "cilium.io": (
        "CiliumBGPAdvertisement CiliumBGPClusterConfig CiliumBGPNodeConfigOverride CiliumBGPPeerConfig "
        "CiliumBGPPeeringPolicy CiliumCIDRGroup CiliumClusterwideEnvoyConfig CiliumClusterwideNetworkPolicy "
        "CiliumEgressGatewayPolicy CiliumL2AnnouncementPolicy CiliumLoadBalancerIPPool CiliumNode "
        "CiliumPodIPPool"
    ),
    "console.openshift.io": (
        "ConsoleCLIDownload ConsoleExternalLogLink ConsoleLink ConsoleNotification ConsolePlugin "
        "ConsoleQuickStart ConsoleSample ConsoleYAMLSample"
    ),
    "datadoghq.com": "DatadogPodAutoscalerClusterProfile",
    "deviceplugin.intel.com": (
        "DlbDevicePlugin DsaDevicePlugin FpgaDevicePlugin GpuDevicePlugin IaaDevicePlugin NpuDevicePlugin "
        "QatDevicePlugin SgxDevicePlugin"
    ),
    "elbv2.k8s.aws": "IngressClassParams",
    "expansion.gatekeeper.sh": "ExpansionTemplate",
    "externaldata.gatekeeper.sh": "Provider",
    "helm.openshift.io": "HelmChartRepository",
    "hostpathprovisioner.kubevirt.io": "HostPathProvisioner",
    "imageregistry.operator.openshift.io": "Config ImagePruner",
    "instancetype.kubevirt.io": "VirtualMachineClusterInstancetype VirtualMachineClusterPreference",
    "karpenter.k8s.aws": "EC2NodeClass",
    "karpenter.sh": "NodeClaim NodeOverlay NodePool",
    "kueue.x-k8s.io": (
        "AdmissionCheck ClusterQueue Cohort MultiKueueCluster MultiKueueConfig ProvisioningRequestConfig "
        "ResourceFlavor Topology WorkloadPriorityClass"
    ),
    "migrations.kubevirt.io": "MigrationPolicy",
    "mutations.gatekeeper.sh": "Assign AssignImage AssignMetadata ModifySet",
    "networkaddonsoperator.network.kubevirt.io": "NetworkAddonsConfig",
    "nfd.k8s-sigs.io": "NodeFeatureRule",
    "nmstate.io": "NMState NodeNetworkConfigurationEnactment NodeNetworkConfigurationPolicy NodeNetworkState",
    "nvidia.com": "ClusterPolicy GPUCluster NVIDIADriver",
    "objectbucket.io": "ObjectBucket",
    "observability.openshift.io": "UIPlugin",
    "operator.open-cluster-management.io": "ClusterManager Klusterlet",
    "operator.openshift.io": (
        "Authentication CSISnapshotController CloudCredential ClusterAPI ClusterCSIDriver "
        "ClusterVersionOperator Config Console DNS Etcd EtcdBackup ImageContentSourcePolicy Ingress "
        "InsightsOperator KubeAPIServer KubeControllerManager KubeScheduler KubeStorageVersionMigrator "
        "MachineConfiguration Network OLM OpenShiftAPIServer OpenShiftControllerManager ServiceCA Storage"
    ),
    "operator.tekton.dev": (
        "ManualApprovalGate OpenShiftPipelinesAsCode SyncerService TektonAddon TektonChain TektonConfig "
        "TektonDashboard TektonInstallerSet TektonMulticlusterProxyAAE TektonPipeline TektonPruner "
        "TektonResult TektonScheduler TektonTrigger"
    ),
    "operators.coreos.com": "OLMConfig Operator",
    "postgresql.cnpg.io": "ClusterImageCatalog",
    "samples.operator.openshift.io": "Config",
    "serving.kserve.io": (
        "ClusterLocalModel ClusterServingRuntime ClusterStorageContainer LocalModelCache LocalModelNode LocalModelNodeGroup"
    ),
    "tailscale.com": "Connector DNSConfig ProxyClass ProxyGroup Recorder",
    "tekton.dev": "ClusterTask",
    "templates.gatekeeper.sh": "ConstraintTemplate",
    "topology.node.k8s.io": "NodeResourceTopology",
    "triggers.tekton.dev": "ClusterInterceptor ClusterTriggerBinding",
}
_NAMESPACED = {
    "acid.zalan.do": "OperatorConfiguration PostgresTeam postgresql",
    "actions.github.com": "AutoscalingListener AutoscalingRunnerSet EphemeralRunner EphemeralRunnerSet",
    "agent.k8s.elastic.co": "Agent",
    "apm.k8s.elastic.co": "ApmServer",
    "appprotect.f5.com": "APLogConf APPolicy APUserSig",
    "apps.3scale.net": "APIManager APIManagerBackup APIManagerRestore APIcast",
    "apps.open-cluster-management.io": "Channel Deployable GitOpsCluster HelmRelease PlacementRule Subscription",
    "autoscaling.k8s.io": "VerticalPodAutoscaler",
    "awx.ansible.com": "AWX AWXBackup AWXMeshIngress AWXRestore",
    "barmancloud.cnpg.io": "ObjectStore",
    "beat.k8s.elastic.co": "Beat",
    "cdi.kubevirt.io": "DataImportCron DataSource DataVolume VolumeCloneSource VolumeImportSource VolumeUploadSource",
    "ceph.rook.io": (
        "CephBlockPool CephBlockPoolRadosNamespace CephBucketNotification CephBucketTopic CephCOSIDriver "
        "CephClient CephCluster CephFilesystem CephFilesystemMirror CephFilesystemSubVolumeGroup CephNFS "
        "CephNVMeOFGateway CephObjectRealm CephObjectStore CephObjectStoreAccount CephObjectStoreUser "
        "CephObjectZone CephObjectZoneGroup CephRBDMirror"
    ),
    "cilium.io": "CiliumEnvoyConfig CiliumLocalRedirectPolicy CiliumNetworkPolicy CiliumNodeConfig",
    "clickhouse.altinity.com": "ClickHouseInstallation ClickHouseInstallationTemplate ClickHouseOperatorConfiguration",
    "cluster.x-k8s.io": "Cluster ClusterClass Machine MachineDeployment MachineHealthCheck MachinePool MachineSet",
    "compliance.openshift.io": "ComplianceSuite ScanSetting ScanSettingBinding TailoredProfile",
    "config.gatekeeper.sh": "Config",
    "dapr.io": "Component Configuration HTTPEndpoint Resiliency Subscription",
    "datadoghq.com": (
        "DatadogAgent DatadogAgentInternal DatadogAgentProfile DatadogCSIDriver DatadogDashboard "
        "DatadogGenericResource DatadogInstrumentation DatadogMetric DatadogMonitor DatadogPodAutoscaler "
        "DatadogSLO"
    ),
    "dragonflydb.io": "Dragonfly",
    "elasticsearch.k8s.elastic.co": "Elasticsearch",
    "elbv2.k8s.aws": "ALBTargetControlConfig TargetGroupBinding",
    "externaldns.k8s.io": "DNSEndpoint",
    "flagger.app": "AlertProvider Canary MetricTemplate",
    "fluxcd.controlplane.io": "FluxInstance FluxReport ResourceSet ResourceSetInputProvider",
    "gateway.envoyproxy.io": (
        "Backend BackendTrafficPolicy ClientTrafficPolicy EnvoyExtensionPolicy EnvoyPatchPolicy EnvoyProxy "
        "HTTPRouteFilter SecurityPolicy"
    ),
    "gateway.k8s.aws": "ListenerRuleConfiguration LoadBalancerConfiguration TargetGroupConfiguration",
    "grafana.integreatly.org": (
        "Grafana GrafanaAlertRuleGroup GrafanaContactPoint GrafanaDashboard GrafanaDatasource GrafanaFolder "
        "GrafanaLibraryPanel GrafanaManifest GrafanaMuteTiming GrafanaNotificationPolicy "
        "GrafanaNotificationPolicyRoute GrafanaNotificationTemplate GrafanaServiceAccount"
    ),
    "hco.kubevirt.io": "HyperConverged",
    "helm.cattle.io": "HelmChart HelmChartConfig",
    "helm.openshift.io": "ProjectHelmChartRepository",
    "instancetype.kubevirt.io": "VirtualMachineInstancetype VirtualMachinePreference",
    "jaegertracing.io": "Jaeger",
    "jobset.x-k8s.io": "JobSet",
    "k8s.cni.cncf.io": "NetworkAttachmentDefinition",
    "k8s.keycloak.org": "Keycloak KeycloakRealmImport",
    "k8s.nginx.org": "GlobalConfiguration Policy TransportServer VirtualServer VirtualServerRoute",
    "kafka.strimzi.io": (
        "Kafka KafkaBridge KafkaConnect KafkaConnectS2I KafkaConnector KafkaMirrorMaker KafkaMirrorMaker2 "
        "KafkaNodePool KafkaRebalance KafkaTopic KafkaUser"
    ),
    "kiali.io": "Kiali",
    "kibana.k8s.elastic.co": "Kibana",
    "kubevirt.io": (
        "KubeVirt VirtualMachine VirtualMachineInstance VirtualMachineInstanceMigration "
        "VirtualMachineInstancePreset VirtualMachineInstanceReplicaSet"
    ),
    "kueue.x-k8s.io": "LocalQueue Workload",
    "leaderworkerset.x-k8s.io": "LeaderWorkerSet",
    "logging.openshift.io": "ClusterLogForwarder ClusterLogging LogFileMetricExporter",
    "logstash.k8s.elastic.co": "Logstash",
    "loki.grafana.com": "AlertingRule LokiStack RecordingRule RulerConfig",
    "longhorn.io": (
        "BackingImage BackingImageDataSource BackingImageManager Backup BackupBackingImage BackupTarget "
        "BackupVolume Engine EngineFrontend EngineImage InstanceManager Node Orphan RecurringJob Replica "
        "Setting Shard ShardGroup ShareManager Snapshot SupportBundle SystemBackup SystemRestore Volume "
        "VolumeAttachment"
    ),
    "lvm.topolvm.io": "LVMCluster",
    "machine.openshift.io": "ControlPlaneMachineSet Machine MachineHealthCheck MachineSet",
    "maistra.io": "ServiceMeshControlPlane ServiceMeshMember ServiceMeshMemberRoll",
    "metal3.io": "BareMetalHost",
    "metallb.io": (
        "AddressPool BFDProfile BGPAdvertisement BGPPeer Community ConfigurationState IPAddressPool "
        "L2Advertisement MetalLB ServiceBGPStatus ServiceL2Status"
    ),
    "minio.min.io": "Tenant",
    "mongodbcommunity.mongodb.com": "MongoDBCommunity",
    "nfd.k8s-sigs.io": "NodeFeature NodeFeatureGroup",
    "nfd.openshift.io": "NodeFeatureDiscovery",
    "noobaa.io": "BackingStore BucketClass NamespaceStore NooBaa NooBaaAccount",
    "objectbucket.io": "ObjectBucketClaim",
    "observability.openshift.io": "ClusterLogForwarder",
    "ocs.openshift.io": "StorageCluster",
    "opentelemetry.io": "Instrumentation OpAMPBridge OpenTelemetryCollector TargetAllocator",
    "operator.knative.dev": "KnativeEventing KnativeServing",
    "operator.openshift.io": "IngressController",
    "operator.victoriametrics.com": (
        "VMAgent VMAlert VMAlertmanager VMAuth VMCluster VMNodeScrape VMPodScrape VMProbe VMRule "
        "VMServiceScrape VMSingle VMStaticScrape VMUser"
    ),
    "operators.coreos.com": "CatalogSource ClusterServiceVersion InstallPlan OperatorCondition OperatorGroup Subscription",
    "org.eclipse.che": "CheCluster",
    "policy.open-cluster-management.io": "PlacementBinding Policy PolicyAutomation PolicySet",
    "postgresql.cnpg.io": (
        "Backup Cluster Database DatabaseRole FailoverQuorum ImageCatalog Pooler Publication ScheduledBackup Subscription"
    ),
    "projectcontour.io": "ContourConfiguration ContourDeployment ExtensionService HTTPProxy TLSCertificateDelegation",
    "psmdb.percona.com": "PerconaServerMongoDB PerconaServerMongoDBBackup PerconaServerMongoDBRestore",
    "pxc.percona.com": "PerconaXtraDBBackup PerconaXtraDBCluster PerconaXtraDBClusterBackup PerconaXtraDBClusterRestore",
    "quay.redhat.com": "QuayRegistry",
    "rabbitmq.com": (
        "Binding Exchange Federation Permission Policy Queue RabbitmqCluster SchemaReplication Shovel TopicPermission User Vhost"
    ),
    "route.openshift.io": "Route",
    "secrets-store.csi.x-k8s.io": "SecretProviderClass SecretProviderClassPodStatus",
    "serving.kserve.io": (
        "InferenceGraph InferenceService LLMInferenceService LLMInferenceServiceConfig "
        "LocalModelNamespaceCache ServingRuntime TrainedModel"
    ),
    "source.extensions.fluxcd.io": "ArtifactGenerator",
    "sriovnetwork.openshift.io": "SriovIBNetwork SriovNetwork SriovNetworkNodePolicy SriovNetworkNodeState SriovOperatorConfig",
    "ssp.kubevirt.io": "SSP",
    "talos.dev": "ServiceAccount",
    "tekton.dev": "CustomRun Pipeline PipelineRun StepAction Task TaskRun VerificationPolicy",
    "traefik.io": (
        "IngressRoute IngressRouteTCP IngressRouteUDP Middleware MiddlewareTCP ServersTransport "
        "ServersTransportTCP TLSOption TLSStore TraefikService"
    ),
    "triggers.tekton.dev": "EventListener Interceptor Trigger TriggerBinding TriggerTemplate",
    "upgrade.cattle.io": "Plan",
    "velero.io": (
        "Backup BackupRepository BackupStorageLocation DataDownload DataUpload DeleteBackupRequest "
        "DownloadRequest PodVolumeBackup PodVolumeRestore ResticRepository Restore Schedule "
        "ServerStatusRequest VolumeSnapshotLocation"
    ),
    "volsync.backube": "ReplicationDestination ReplicationSource",
}
_CONSTRAINTS = "constraints.gatekeeper.sh"
"""The group of the kinds that Gatekeeper defines for ConstraintTemplates, all of them cluster-scoped."""


def is_namespaced(group: str, kind: str) -> bool | None:
    """Return whether a kind of an operator is namespaced; None for a kind that is not known."""
    if group == _CONSTRAINTS or kind in _CLUSTER_SCOPED.get(group, "").split():
        return False
    return True if kind in _NAMESPACED.get(group, "").split() else None


def load_scopes() -> dict[tuple[str, str], bool]:
    """Return whether each kind is namespaced, by group and kind."""
    tables = (False, _CLUSTER_SCOPED), (True, _NAMESPACED)
    return {(group, kind): scope for scope, table in tables for group, kinds in table.items() for kind in kinds.split()}
