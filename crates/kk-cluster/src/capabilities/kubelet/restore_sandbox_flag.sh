# Adds the flag in $kept to kubeadm's flags of the kubelet in $file again.
# shellcheck disable=SC2154 # file and kept stand before this script
if [ -e "$file" ] && ! grep -q -e --pod-infra-container-image "$file"; then
    cp -p "$file" "$file.kk-new"
    FLAG=$(cat "$kept") awk '/^KUBELET_KUBEADM_ARGS="/ { sub(/"[ \t]*$/, ""); $0 = $0 " " ENVIRON["FLAG"] "\"" } { print }' \
        "$file" >"$file.kk-new"
    mv -f "$file.kk-new" "$file"
fi
rm -f "$kept"
