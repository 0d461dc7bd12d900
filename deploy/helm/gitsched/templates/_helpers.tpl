{{/* Names and labels: the release `gitsched` has the names of deploy/kustomize. */}}
{{- define "gitsched.name" -}}
{{- if contains "gitsched" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-gitsched" (.Release.Name | trunc 31 | trimSuffix "-") }}{{ end }}
{{- end }}

{{- define "gitsched.selector" -}}
app.kubernetes.io/name: gitsched
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "gitsched.labels" -}}
{{ include "gitsched.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "gitsched.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}{{ else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* The pod of `watch` and of `reconcile`; called with (dict "root" $ "component" "watch" "args" (list ...)). */}}
{{- define "gitsched.pod" -}}
{{- $values := .root.Values }}
{{- $name := include "gitsched.name" .root }}
metadata:
  labels:
    {{- include "gitsched.selector" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
  annotations:
    checksum/config: {{ include (print .root.Template.BasePath "/config-maps.yaml") .root | sha256sum }}
    {{- with $values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ $name }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- if eq .component "watch" }}
  terminationGracePeriodSeconds: {{ add $values.watch.grace 10 }}
  {{- else }}
  restartPolicy: Never
  {{- end }}
  {{- with $values.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    {{- range $key, $value := $values.securityContext }}
    {{- if not (kindIs "invalid" $value) }}
    {{ $key }}: {{ int64 $value }}
    {{- end }}
    {{- end }}
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: gitsched
      image: {{ include "gitsched.image" .root }}
      imagePullPolicy: {{ $values.image.pullPolicy }}
      args: {{ toJson .args }}
      envFrom:
        - configMapRef:
            name: {{ $name }}-environment
      {{- if eq .component "watch" }}
      ports:
        - name: http
          containerPort: {{ $values.watch.port }}
          protocol: TCP
      startupProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 2
        timeoutSeconds: 5
        failureThreshold: 60
      livenessProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 20
        timeoutSeconds: 5
        failureThreshold: 3
      readinessProbe:
        httpGet: {path: /readyz, port: http}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 3
      {{- end }}
      resources:
        {{- toYaml $values.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        privileged: false
        capabilities:
          drop: [ALL]
      volumeMounts:
        - {name: cache, mountPath: /var/cache/gitsched}
        - {name: tmp, mountPath: /tmp}
        - {name: settings, mountPath: /etc/gitsched/settings, readOnly: true}
        - {name: secrets, mountPath: /etc/gitsched/secrets, readOnly: true}
        {{- with $values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  {{- if eq .component "watch" }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "gitsched.selector" .root | nindent 10 }}
          app.kubernetes.io/component: watch
  {{- end }}
  {{- with $values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  volumes:
    - name: cache
      {{- if and (eq .component "reconcile") $values.reconcile.cacheClaim }}
      persistentVolumeClaim:
        claimName: {{ $values.reconcile.cacheClaim }}
      {{- else }}
      emptyDir:
        sizeLimit: {{ $values.cache.sizeLimit }}
      {{- end }}
    - name: tmp
      emptyDir:
        sizeLimit: 1Gi
    - name: settings
      configMap:
        name: {{ $name }}-settings
    - name: secrets
      secret:
        secretName: {{ $values.secretName }}
        defaultMode: 288
    {{- with $values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}
