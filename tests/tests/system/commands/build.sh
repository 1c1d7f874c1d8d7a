# Compiler and make: temporary files, parallel jobs, running what was built.
set -eu
mkdir build && cd build
cat > hello.c <<'C'
#include <pthread.h>
#include <stdio.h>
static void *run(void *text) { puts(text); return NULL; }
int main(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, "built")) return 1;
    return pthread_join(thread, NULL);
}
C
cp hello.c other.c
cat > Makefile <<'MAKE'
all: hello other
%: %.c
	@gcc -O2 -g -pipe -pthread -o $@ $<
MAKE
make -s -j 4
[[ $(./hello) == built && $(./other) == built ]]
gcc -c hello.c && ar rc libhello.a hello.o && nm libhello.a > /tmp/names && strip hello
cd .. && rm -r build
echo ok
