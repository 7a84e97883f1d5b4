/* The container that holds a pod's namespaces: sleeps, and collects children that nobody waits for.
 * With -v it prints its version and ends: kubeadm's upgrade check runs it so. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(int signal) { (void)signal; _exit(0); }
static void collect(int signal) { (void)signal; while (waitpid(-1, NULL, WNOHANG) > 0) {} }

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "-v") == 0) { puts("pause " VERSION); return 0; }
  signal(SIGINT, end);
  signal(SIGTERM, end);
  signal(SIGCHLD, collect);
  for (;;) pause();
}
