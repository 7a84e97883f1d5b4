# Prints the result of the last backup by the timer.
systemctl show -p Result -p ExecMainStatus backup-etcd.service | sort
