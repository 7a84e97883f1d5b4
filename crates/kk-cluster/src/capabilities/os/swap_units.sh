# Prints the active swap units that have their own file and are not generated from /etc/fstab.
systemctl show -p Id -p LoadState -p ActiveState -p FragmentPath -p SourcePath '*.swap' 2>/dev/null | awk '
    function judge() {
        if (is["LoadState"] == "loaded" && is["ActiveState"] == "active" && is["FragmentPath"] != "" &&
            is["SourcePath"] != "/etc/fstab") print is["Id"]
        split("", is)
    }
    /^$/ { judge(); next }
    { at = index($0, "="); is[substr($0, 1, at - 1)] = substr($0, at + 1) }
    END { judge() }'
