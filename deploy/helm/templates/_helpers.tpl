{{/* Name of all objects. */}}
{{- define "nri-resmgr.name" -}}
{{- default .Release.Name .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* Labels that select the pods. */}}
{{- define "nri-resmgr.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "nri-resmgr.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "nri-resmgr.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "nri-resmgr.account" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "nri-resmgr.name" .) .Values.serviceAccount.name }}
{{- else }}
{{- required "serviceAccount.name is needed where serviceAccount.create is false" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "nri-resmgr.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* Namespace of the documents. */}}
{{- define "nri-resmgr.documents" -}}
{{- default .Release.Namespace .Values.agent.namespace }}
{{- end }}

{{/* Capabilities of the daemon, as a list in JSON. */}}
{{- define "nri-resmgr.capabilities" -}}
{{- $features := .Values.features }}
{{- $added := list }}
{{- if $features.scheduling }}{{ $added = append $added "SYS_NICE" }}{{ end }}
{{- if or $features.partitions $features.cstates $features.speedSelect }}{{ $added = append $added "SYS_ADMIN" }}{{ end }}
{{- $added | toJson }}
{{- end }}

{{- define "nri-resmgr.hostPID" -}}
{{- if or .Values.features.partitions .Values.features.resctrl .Values.features.scheduling }}true{{ end }}
{{- end }}

{{/* Switches NRI on before the daemon starts. */}}
{{- define "nri-resmgr.enableRuntime" -}}
- name: enable-runtime
  image: {{ include "nri-resmgr.image" . }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  command: [nri-resmgr]
  args:
    - enable-runtime
    - --host-root=/host
    {{- if .Values.enableRuntime.restart }}
    - --restart
    {{- end }}
    {{- range .Values.enableRuntime.extraArgs }}
    - {{ . | quote }}
    {{- end }}
  terminationMessagePolicy: FallbackToLogsOnError
  resources:
    requests: {cpu: 10m, memory: 32Mi}
    limits: {memory: 64Mi}
  securityContext:
    runAsUser: 0
    runAsGroup: 0
    privileged: false
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    # To see with which file the runtime was started.
    capabilities: {drop: [ALL], add: [SYS_PTRACE]}
    seccompProfile: {type: RuntimeDefault}
  volumeMounts:
    - {name: etc, mountPath: /host/etc}
    - {name: proc, mountPath: /host/proc, readOnly: true}
    - {name: host-run, mountPath: /host/run, readOnly: true}
{{- end }}

{{/* Labels that select the pods of the webhook, and not those of the DaemonSet. */}}
{{- define "nri-resmgr.webhookSelector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}-webhook
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "nri-resmgr.webhookLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "nri-resmgr.webhookSelector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "nri-resmgr.webhookMetadata" -}}
name: {{ include "nri-resmgr.name" . }}-webhook
labels:
  {{- include "nri-resmgr.webhookLabels" . | nindent 2 }}
{{- if eq .Values.webhook.certificates.source "cert-manager" }}
annotations:
  cert-manager.io/inject-ca-from: {{ .Release.Namespace }}/{{ include "nri-resmgr.name" . }}-webhook
{{- end }}
{{- end }}

{{/* Where API servers find a path of the webhook; its own certificates add their CAs. */}}
{{- define "nri-resmgr.webhookClient" -}}
{{- $top := index . 0 -}}
service:
  name: {{ include "nri-resmgr.name" $top }}-webhook
  namespace: {{ $top.Release.Namespace }}
  path: {{ index . 1 }}
  port: 443
{{- if eq $top.Values.webhook.certificates.source "given" }}
caBundle: {{ required "webhook.certificates.caBundle is needed with given certificates" $top.Values.webhook.certificates.caBundle | b64enc }}
{{- end }}
{{- end }}

{{/* The objects that the webhook has no part in. */}}
{{- define "nri-resmgr.webhookSelectors" -}}
{{- with .Values.webhook.excludedNamespaces }}
namespaceSelector:
  matchExpressions:
    - key: kubernetes.io/metadata.name
      operator: NotIn
      values:
        {{- toYaml . | nindent 8 }}
{{- end }}
objectSelector:
  matchExpressions:
    - key: app.kubernetes.io/name
      operator: NotIn
      values: [{{ .Chart.Name }}-webhook]
{{- if semverCompare ">=1.28-0" .Capabilities.KubeVersion.Version }}
matchConditions:
  - name: not-mirror
    expression: >-
      !has(object.metadata.annotations)
      || !('kubernetes.io/config.mirror' in object.metadata.annotations)
{{- end }}
{{- end }}
