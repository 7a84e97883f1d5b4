# Verifies a snapshot, and prints how far it goes.
# shellcheck disable=SC2154 # snapshot stands before this script
revision=$(revision_of "$snapshot")
echo "revision $revision"
