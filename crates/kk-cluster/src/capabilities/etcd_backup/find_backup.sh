# Verifies a backup, and describes it as backup.sh does.
# shellcheck disable=SC2154 # backup stands before this script
revision=$(revision_of "$backup")
described "$backup" "$revision"
