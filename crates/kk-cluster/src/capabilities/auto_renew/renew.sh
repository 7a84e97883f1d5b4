# Renews what kubeadm made on this control plane and what ends in less than $seconds, by the timer k8s-certs-renew. One
# control plane at a time: a Lease in the cluster says whose turn it is, and nobody begins before all API servers are ready.
# What was begun and has not ended is taken up, as kk takes it up.
# shellcheck disable=SC2154,SC2034 # user, init, seconds and deadline stand before this script; the scripts after it read the rest
note=/etc/kubernetes/kubekey/cluster.yaml aside=/etc/kubernetes/kubekey/renewal
leaves='apiserver apiserver-kubelet-client front-proxy-client admin.conf super-admin.conf controller-manager.conf scheduler.conf'
# The manifest of a static pod that was to start again when the host lost its power.
for manifest in kube-apiserver kube-controller-manager kube-scheduler; do
    manifest=/etc/kubernetes/manifests/$manifest.yaml staged=/etc/kubernetes/kubekey/manifests/${manifest##*/}
    if [ ! -e "$manifest" ] && [ -e "$staged" ]; then
        cp -p "$staged" "${manifest%/*}/.${manifest##*/}"
        mv -f "${manifest%/*}/.${manifest##*/}" "$manifest"
    fi
done
[ -e "$note" ] || kk_fail "the settings of this control plane are not noted: kk create cluster did not come to its end"
{ printf '%s' "$init" && cat "$note"; } >config.yaml
kk_do kubeadm certs check-expiration --config config.yaml >expirations

# ends NAME: when its certificate ends, in seconds since 1970. Nothing where kubeadm knows none of this name.
ends() {
    when=$(awk -v name="$1" '$1 == name { print $2, $3, $4, $5, $6; exit }' expirations)
    [ -z "$when" ] || date -u -d "$when" +%s
}
now=$(date +%s) due='' soonest=''
for name in $leaves; do
    end=$(ends "$name")
    if [ -z "$end" ]; then
        # Before Kubernetes 1.29 there was no super-admin.conf, and only the first control plane has it.
        [ "$name" != super-admin.conf ] || continue
        kk_fail "kubeadm does not say until when $name is valid; kk create cluster repairs it: $(grep -F "$name" expirations)"
    fi
    if [ -z "$soonest" ] || [ "$end" -lt "$soonest" ]; then soonest=$end; fi
    [ $((end - now)) -ge "$seconds" ] || due="$due $name"
done
begun=$(cat "$aside/names" 2>/dev/null || :)
for name in $begun; do
    case " $leaves kubelet.conf " in *" $name "*) ;; *) continue ;; esac
    case " $due " in *" $name "*) ;; *) due="$due $name" ;; esac
done
due=${due# }
if [ -z "$due" ]; then
    [ ! -e "$aside/copies" ] || follow
    echo "nothing to renew; the first certificate ends on $(date -u -d "@$soonest" +%Y-%m-%d)"
    exit 0
fi
echo "to be renewed: $due"

take_lease
until kk_lock >locked; do
    [ "$(kk_uptime)" -lt "$deadline" ] || kk_fail "$(cat locked)"
    sleep 5
done
has_host=yes

# Prints the API servers that are not ready.
unready() {
    kubectl --request-timeout 10s -n kube-system get pods -l component=kube-apiserver \
        -o jsonpath='{range .items[*]}{.metadata.name} {.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}' >api-servers 2>&1 ||
        { tail -n 1 api-servers && return; }
    [ -s api-servers ] || echo "the API names none"
    awk '$2 != "True" { printf "%s%s", separator, $1; separator = ", " }' api-servers
}
until missing=$(unready) && [ -z "$missing" ]; do
    # Where the end is near, waiting for a host that is gone for good would take this one, too.
    if [ $((soonest - now)) -lt $((seconds / 10)) ]; then
        echo "goes on, because there is little time left; not ready: $missing"
        break
    fi
    [ "$(kk_uptime)" -lt "$deadline" ] || kk_fail "not all API servers are ready, so none is restarted: $missing"
    sleep 5
done

# Copies of the administrator's kubeconfig that are as it is follow it.
mkdir -p "$aside"
if [ ! -e "$aside/copies" ]; then
    home=$(getent passwd "$user" | cut -d : -f 6)
    for copy in /root/.kube/config "$home/.kube/config"; do
        [ ! -f "$copy" ] || ! cmp -s /etc/kubernetes/admin.conf "$copy" || printf '%s\n' "$copy"
    done | sort -u >"$aside/copies.new"
    mv -f "$aside/copies.new" "$aside/copies"
fi
names=$due keep=yes manifests='' again=''
for name in $due; do
    case $name in
    apiserver | apiserver-kubelet-client | front-proxy-client) part=kube-apiserver ;;
    controller-manager.conf | scheduler.conf) part=kube-${name%.conf} ;;
    *) continue ;;
    esac
    case " $again " in *" $part "*) ;; *) again="$again $part" ;; esac
done
