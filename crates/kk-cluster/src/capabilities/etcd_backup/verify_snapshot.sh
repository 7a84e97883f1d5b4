# What tells a snapshot of etcd that is whole from another file.
# Prints the revision of a snapshot. It ends with the SHA-256 of what is before; its pages are multiples of 512 bytes (etcd,
# etcdutl/snapshot/v3_snapshot.go). `etcdutl snapshot status` looks at the pages only.
revision_of() { # FILE
    [ $(($(stat -c %s "$1") % 512)) -eq 32 ] || {
        echo "$1 is not a whole snapshot of etcd: its checksum is missing" >&2
        return 1
    }
    wanted=$(tail -c 32 "$1" | od -An -v -tx1 | tr -d ' \n')
    found=$(head -c -32 "$1" | sha256sum | cut -d ' ' -f 1)
    [ "$wanted" = "$found" ] || {
        echo "$1 is damaged: its SHA-256 is not the one at its end" >&2
        return 1
    }
    status=$(etcdutl snapshot status "$1" -w json) || return 1
    revision=$(printf '%s' "$status" | sed -nE 's/.*"revision": *([0-9]+).*/\1/p')
    [ "${revision:-0}" -gt 0 ] || {
        echo "$1 holds nothing: $status" >&2
        return 1
    }
    echo "$revision"
}
# Prints path, SHA-256, size in bytes and revision, separated by tabs.
described() { # FILE REVISION
    sum=$(sha256sum <"$1") && size=$(stat -c %s "$1") && printf '%s\t%s\t%s\t%s\n' "$1" "${sum%% *}" "$size" "$2"
}
