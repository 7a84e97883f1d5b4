# Prints the mount point of the file system that contains $data, or will contain it.
# shellcheck disable=SC2154 # data stands before this script
path=$data
while [ ! -d "$path" ]; do
    path=${path%/*}
    [ -n "$path" ] || path=/
done
df -P "$path" | tail -n 1 | sed 's/^.*[0-9-]%  *//'
