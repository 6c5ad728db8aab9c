/* Preloaded into a real llama-server: does something bad once a given line has been logged.
 *
 * LLAMA_FAULT     what to do
 * LLAMA_FAULT_AT  the line that it waits for
 *
 * llama.cpp writes each line of its log with fputs.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void spin(double seconds) {
    double end = now() + seconds;
    while (now() < end) {
    }
}

static void say(const char *text) {
    if (write(2, text, strlen(text)) < 0) _exit(99);
}

static long address_space_kib(void) {
    char line[256];
    long size = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "VmSize: %ld kB", &size) == 1) break;
    if (file) fclose(file);
    return size;
}

static void leave_child(int ignore_term) {
    if (fork() == 0) {
        if (ignore_term) signal(SIGTERM, SIG_IGN);
        else setsid();
        for (;;) sleep(600);
    }
}

static void spin_here(int number) {
    (void)number;
    spin(1e9);
}

static void block_here(int number) {
    (void)number;
    int ends[2];
    char byte;
    if (pipe(ends) || read(ends[0], &byte, 1) < 0) _exit(99);
}

/* The log has a thread of its own: what is to stop the server must happen in the main one. */
static void in_main_thread(void (*handler)(int)) {
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGUSR2, &action, NULL);
    syscall(SYS_tgkill, getpid(), getpid(), SIGUSR2);
}

static void act(const char *fault) {
    const char *argument = getenv("LLAMA_FAULT_ARGUMENT");
    if (!strcmp(fault, "spin")) in_main_thread(spin_here);
    if (!strcmp(fault, "block")) in_main_thread(block_here);
    if (!strcmp(fault, "stop")) raise(SIGSTOP);
    if (!strcmp(fault, "abort")) abort();
    if (!strcmp(fault, "segv")) *(volatile int *)8 = 1;
    if (!strcmp(fault, "slow")) spin(atof(argument));
    if (!strcmp(fault, "fail")) {
        say(argument);
        say("\n");
        _exit(0);
    }
    if (!strcmp(fault, "oom")) {
        rlim_t size = (rlim_t)(address_space_kib() + (8 << 10)) << 10;
        struct rlimit limit = {size, size};
        setrlimit(RLIMIT_AS, &limit);
    }
    if (!strcmp(fault, "flood")) {
        static char block[1 << 16];
        memset(block, 'f', sizeof block);
        for (size_t at = 127; at < sizeof block; at += 128) block[at] = '\n';
        for (long left = atol(argument); left > 0; left -= sizeof block)
            if (write(2, block, sizeof block) < 0) _exit(99);
    }
    if (!strcmp(fault, "garbage")) {
        static char block[1 << 18];
        int source = open("/dev/urandom", O_RDONLY);
        ssize_t got = read(source, block, sizeof block);
        if (got < 0 || write(1, block, got) < 0) _exit(99);
        close(source);
    }
    if (!strcmp(fault, "ignore-term")) {
        leave_child(1);
        signal(SIGTERM, SIG_IGN);
        in_main_thread(block_here);
    }
    if (!strcmp(fault, "orphan")) leave_child(0);
}

int fputs(const char *text, FILE *file) {
    static int (*real)(const char *, FILE *);
    static int done;
    if (!real) real = (int (*)(const char *, FILE *))dlsym(RTLD_NEXT, "fputs");
    int result = real(text, file);
    const char *at = getenv("LLAMA_FAULT_AT"), *fault = getenv("LLAMA_FAULT");
    if (!done && at && fault && strstr(text, at)) {
        done = 1;
        fflush(file);
        act(fault);
    }
    return result;
}
