# shellcheck disable=SC2154 # round and state stand before this script
echo "$round" >"$state/stage.new"
kk_sync "$state/stage.new"
mv -f "$state/stage.new" "$state/stage"
