# Sets the server in the kubelet's kubeconfig to $server. The kubelet reads the file when it starts.
# shellcheck disable=SC2154 # server stands before this script
file=/etc/kubernetes/kubelet.conf
cp -p $file $file.kk-new
sed "s|^\( *server:\).*|\1 $server|" $file >$file.kk-new
mv -f $file.kk-new $file
