# Installs an addon: its chart by helm, then its manifests. Data that may be secret is only in files next to this script, never in
# arguments.
# shellcheck disable=SC2154 # name, namespace, chart, wait, manifests, complete, notes and template stand before this script
[ -n "$complete" ] || kk_fail "the chart or a manifest of $name is not on the control machine"
export HELM_CACHE_HOME="$PWD/helm" HELM_CONFIG_HOME="$PWD/helm" HELM_DATA_HOME="$PWD/helm"
begun=$notes/addon-$name.begun
# Remove the notes: until the end, the addon is not as they state.
rm -f "$notes/addon-$name.release" "$notes/addon-$name.objects"
if [ -n "$chart" ]; then
    # A killed run leaves its release in a pending state, in which helm refuses to begin.
    if [ -e "$begun" ]; then
        kubectl -n "$namespace" delete secrets -l "owner=helm,name=$name,status in (pending-install,pending-upgrade,pending-rollback)" >/dev/null
    fi
    : >begun
    kk_put begun "$begun" 600 root:root
    # Without --reset-values, a release keeps values that are no longer specified.
    set -- upgrade --install "$name" "$chart" --namespace "$namespace" --create-namespace --reset-values --timeout 5m
    [ ! -e values.yaml ] || set -- "$@" --values values.yaml
    [ ! -e single.json ] || set -- "$@" --values single.json
    [ -z "$wait" ] || set -- "$@" --wait
    kk_do helm "$@" >/dev/null || {
        code=$?
        # Only a killed helm leaves its release in a pending state. kk must not remove what another tool begins later.
        [ "$code" -ge 128 ] || rm -f "$begun"
        exit 1
    }
    rm -f "$begun"
    # Record the revision: a different one was made by another tool, or is an older one after a restore of etcd.
    kubectl -n "$namespace" get secrets -l "owner=helm,name=$name,status=deployed" -L version --no-headers >releases
    awk '$NF + 0 > newest { newest = $NF + 0 } END { if (newest) print newest }' releases >release
    kk_put release "$notes/addon-$name.release" 600 root:root
fi
if [ -n "$manifests" ]; then
    if [ "$namespace" != default ]; then
        kubectl get namespace "$namespace" >/dev/null 2>&1 || kubectl create namespace "$namespace" >/dev/null
        # For objects without a namespace. With -n, kubectl would refuse objects with another namespace.
        (umask 077 && cp "$KUBECONFIG" kubeconfig)
        export KUBECONFIG="$PWD/kubeconfig"
        kubectl config set-context --current --namespace="$namespace" >/dev/null
    fi
    set --
    for file in $manifests; do
        kk_do kubectl apply --server-side --force-conflicts --validate=false --field-manager=kk -f "$file" >/dev/null
        set -- "$@" -f "$file"
    done
    # Record the applied objects: the next probe checks whether they are still there.
    kubectl get --ignore-not-found "$@" -o go-template="$template" >objects
    kk_put objects "$notes/addon-$name.objects" 600 root:root
fi
