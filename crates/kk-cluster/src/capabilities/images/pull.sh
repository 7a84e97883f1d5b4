# Pulls all images in the arguments at the same time: one slow image must not delay the others.
n=0
for image; do
    n=$((n + 1))
    crictl --timeout 30m pull "$image" >pull.$n 2>&1 &
    echo $! >pid.$n
done
n=0 failed=
for image; do
    n=$((n + 1))
    wait "$(cat pid.$n)" || { failed=1; echo "$image: $(tail -n 3 pull.$n)" >&2; }
done
[ -z "$failed" ]
