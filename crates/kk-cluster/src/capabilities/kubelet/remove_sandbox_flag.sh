# Removes the flag --pod-infra-container-image from kubeadm's flags of the kubelet in $file, and keeps it in $kept.
# shellcheck disable=SC2154 # file and kept stand before this script
flag=$(grep -o -e '--pod-infra-container-image[= ][^ "]*' "$file" | head -n 1)
if [ -n "$flag" ]; then
    mkdir -p "${kept%/*}"
    echo "$flag" >"$kept.new"
    mv -f "$kept.new" "$kept"
    cp -p "$file" "$file.kk-new"
    sed 's/ *--pod-infra-container-image[= ][^ "]*//' "$file" >"$file.kk-new"
    mv -f "$file.kk-new" "$file"
fi
