#!/bin/bash
# The demo: three throw-away hosts on this machine, a cluster on them by kk, a request through a Service. `make demo` runs it. It
# leaves files only in target/demo, in the lab's cache and in the lab itself; `make demo-down` ends it.
set -euo pipefail
cd "$(dirname "$0")/../.."
# Not a release build, which takes longer to compile.
programs=${CARGO_TARGET_DIR:-target}/ci
demo=$PWD/target/demo
say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }

say "building kk, the lab and all that runs on the hosts (10 to 25 minutes the first time)"
cargo build --locked --profile ci --bin kk-lab
"$programs/kk-lab" mirror build & mirror=$!
# Hosts boot while Go and cargo compile.
"$programs/kk-lab" up --fresh --no-mirror --hosts 3 & hosts=$!
trap 'kill "$mirror" "$hosts" 2>/dev/null || true' EXIT
cargo build --locked --profile ci --bin kk
wait "$hosts"
wait "$mirror"
trap - EXIT

begun=$SECONDS
say "three hosts, a mirror and a registry"
mkdir -p "$demo/home"
rm -rf "$demo"/{home/.ssh,kubekey}
"$programs/kk-lab" up --hosts 3 --config "$demo/cluster.yaml"

say "kk create cluster -f $demo/cluster.yaml"
# A separate home directory: the hosts are new each time, and their keys must not be added to your known_hosts.
"$programs/kk-lab" enter -- env HOME="$demo/home" "$programs/kk" create cluster -y -f "$demo/cluster.yaml" --workdir "$demo/kubekey"

on() { local host=$1; shift; "$programs/kk-lab" exec "$host" -- "$@"; }
kubectl() { on node1 kubectl --kubeconfig /etc/kubernetes/admin.conf "$@"; }
say "kubectl get nodes"
kubectl get nodes -o wide

say "a web server with a pod on each worker, asked through its Service from the pod on node2"
image=$(kubectl -n kube-system get deployment coredns -o 'jsonpath={.spec.template.spec.containers[0].image}')
sed "s#image: IMAGE#image: $image#" tests/e2e/web.yaml | kubectl apply -f -
kubectl -n web rollout status deployment/web --timeout=60s
kubectl -n web get pods -o wide
printf '\nhttp://web.web.svc.cluster.local:8080/health answers: '
ask() { on node2 sh -s web web.web.svc.cluster.local 2 <tests/e2e/ask_from_pod.sh; }
tries=0
# kube-proxy learns of new endpoints a moment after the pods are ready.
until ask 2>"$demo/why"; do
  [ $((tries += 1)) -lt 10 ] || { cat "$demo/why"; exit 1; }
  sleep 1
done
printf '\n'

say "done: a cluster on three hosts in $((SECONDS - begun)) s"
cat <<X
Look further:
  $programs/kk-lab exec node1 -- kubectl get pods -A       a command on a host
  $programs/kk-lab exec node1 -- bash                      a shell there
  $programs/kk-lab enter -- bash                           a shell of this machine in the hosts' network
  ls $demo/kubekey/lab/runs
                                                           log and journal of each run of kk
Create again (nothing to do):
  $programs/kk-lab enter -- env HOME=$demo/home $programs/kk create cluster -f $demo/cluster.yaml --workdir $demo/kubekey
End it:
  make demo-down
X
