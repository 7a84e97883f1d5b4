# Restarts workloads whose pods trust only the old CA, because programs read the CA only at their start. $value is the same during
# the whole rotation, so that no workload restarts twice. If $only is not empty, only the workloads in this list of namespace/name
# restart. The script does not wait for workloads that were not available before, and leaves paused Deployments as they are. It
# prints the workloads and pods that the operator has to check.
# shellcheck disable=SC2154 # value and only stand before this script, and what is in rollout_progress.sh
list() {
    kubectl get deployments,daemonsets,statefulsets -A -o go-template='{{range .items}}{{.kind}} {{.metadata.namespace}} {{.metadata.name}} {{with .spec.template.spec.automountServiceAccountToken}}{{.}}{{else}}{{if eq (printf "%v" .spec.template.spec.automountServiceAccountToken) "false"}}false{{else}}-{{end}}{{end}} {{with .spec.updateStrategy}}{{.type}}{{else}}-{{end}} {{with (index (or .spec.template.metadata.annotations .metadata) "kubekey.kubesphere.io/cluster-ca")}}{{.}}{{else}}-{{end}} {{if eq .kind "DaemonSet"}}{{.status.desiredNumberScheduled}} {{or .status.numberAvailable 0}}{{else}}{{or .spec.replicas 0}} {{or .status.availableReplicas 0}}{{end}} {{if .spec.paused}}paused{{else}}-{{end}}{{"\n"}}{{end}}'
}

# Waits for the workloads that were restarted last.
wait_for_all() {
    while read -r kind namespace name; do
        while_it_progresses 300 "$namespace" "$kind/$name" kubectl -n "$namespace" rollout status "$kind/$name" --timeout 15s ||
            kk_fail "$namespace/$name does not become available after its restart, without progress for 300 s: $(tail -n 1 wait.err)"
    done <waits
    : >waits
    restarting=0
}

# A few at a time: otherwise registries, nodes and API servers would have to start every pod of the cluster at once.
list >workloads
: >waits
restarting=0
while read -r kind namespace name mounts strategy seen wanted available paused; do
    [ "$mounts" != false ] || continue
    case " ${only:-$namespace/$name} " in *" $namespace/$name "*) ;; *) continue ;; esac
    if [ "$paused" = paused ]; then
        echo "$namespace/$name is paused and keeps its pods: restart them yourself"
        continue
    fi
    if [ "$seen" != "$value" ]; then
        kubectl -n "$namespace" patch "$kind" "$name" --type merge -p "{\"spec\":{\"template\":{\"metadata\":{\"annotations\":{\"kubekey.kubesphere.io/cluster-ca\":\"$value\"}}}}}" >/dev/null </dev/null
    fi
    if [ "$strategy" = OnDelete ]; then
        echo "$namespace/$name restarts when its pods are deleted"
    elif [ "$seen" = "$value" ] || [ "$wanted" = "$available" ]; then
        echo "$kind $namespace $name" >>waits
        restarting=$((restarting + 1))
        [ "$restarting" -lt 25 ] || wait_for_all
    else
        echo "$namespace/$name was not available before, and was not waited for"
    fi
done <workloads
wait_for_all
kubectl get pods -A --field-selector status.phase=Running -o go-template='{{range .items}}{{$pod := .}}{{if not .metadata.ownerReferences}}{{.metadata.namespace}}/{{.metadata.name}} is a pod without a workload{{"\n"}}{{end}}{{range .metadata.ownerReferences}}{{if eq .kind "Job"}}{{$pod.metadata.namespace}}/{{$pod.metadata.name}} is a pod of a Job{{"\n"}}{{end}}{{end}}{{end}}'
