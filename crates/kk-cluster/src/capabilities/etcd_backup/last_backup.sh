# How the last backup by the timer ended.
systemctl show -p Result -p ExecMainStatus backup-etcd.service | sort
