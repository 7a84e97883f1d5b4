# Verifies a snapshot, and prints its last revision.
# shellcheck disable=SC2154 # snapshot stands before this script
revision=$(revision_of "$snapshot")
echo "revision $revision"
