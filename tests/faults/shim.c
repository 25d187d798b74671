/* A disk and a clock on a bad day, for one process.
 *
 * Preloaded into the service by shim.rs. HOTLINE_FAULTS names a file that both sides share: an array of 64-bit
 * numbers, one for each fault, in the order of `enum knob` (shim.rs has the same). HOTLINE_FAULTS_FOLDER is the only
 * folder whose files are touched, the journal's. Everything else passes as it is.
 *
 * What was written and not synced is known, so that it can be lost as a disk loses it: a sync that fails takes it
 * away, and a power cut leaves the first half of it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum knob {
    SYNC_DELAY_US,  /* each sync takes so much longer */
    SYNC_ERRNO,     /* each sync fails, and what it was for is lost */
    GROW_ERRNO,     /* no file grows */
    CHANGE_ERRNO,   /* nothing is written, made, renamed or removed */
    POWER_CUT,      /* the next sync is the process's end, and only half of what it was for is on the disk */
    CLOCK_OFFSET_S, /* the wall clock says so much more */
    SYNCS,          /* counts */
    KNOBS
};

/* Writes between two syncs; the journal does one. */
#define UNSYNCED_MAX 64

static _Atomic int64_t *knobs;
static const char *folder;

static struct written {
    int fd;
    off_t at;
    size_t bytes;
    char *before; /* as many bytes: what stood there, zeros behind the file's end */
} unsynced[UNSYNCED_MAX];
static size_t unsynced_count;
static pthread_mutex_t unsynced_lock = PTHREAD_MUTEX_INITIALIZER;

#define REAL(name) ((__typeof__(&name))real(&name##_found, #name))
#define FOUND(name) static void *_Atomic name##_found

static void *real(void *_Atomic *found, const char *name) {
    void *function = atomic_load(found);
    if (!function) {
        function = dlsym(RTLD_NEXT, name);
        atomic_store(found, function);
    }
    return function;
}

FOUND(open64);
FOUND(write);
FOUND(pwrite64);
FOUND(fdatasync);
FOUND(fsync);
FOUND(rename);
FOUND(unlink);
FOUND(clock_gettime);
FOUND(gettimeofday);

__attribute__((constructor)) static void begin(void) {
    const char *control = getenv("HOTLINE_FAULTS");
    folder = getenv("HOTLINE_FAULTS_FOLDER");
    if (!control || !folder) return;
    int fd = REAL(open64)(control, O_RDWR | O_CLOEXEC);
    if (fd < 0) abort();
    void *shared = mmap(NULL, KNOBS * sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED) abort();
    knobs = shared;
    close(fd);
}

static int64_t knob(enum knob which) { return knobs ? atomic_load(&knobs[which]) : 0; }

static int is_ours(const char *path) {
    if (!folder) return 0;
    size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

static int is_ours_open(int fd) {
    char link[32], path[PATH_MAX];
    if (!knobs) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = '\0';
    /* How far the database has confirmed is noted with every flush and synced now and then: what is lost of it is only
     * noticed later. It is written without being read, so what stood there cannot be known here. */
    const char *name = strrchr(path, '/');
    if (name && (strcmp(name, "/confirmed") == 0 || strcmp(name, "/confirmed.tmp") == 0)) return 0;
    return is_ours(path);
}

static int fail(int64_t code) {
    errno = (int)code;
    return -1;
}

/* What stands where a write is about to go; free it. */
static char *read_before(int fd, off_t at, size_t bytes) {
    char *before = calloc(1, bytes);
    if (!before) abort();
    for (size_t done = 0; done < bytes;) {
        ssize_t some = pread(fd, before + done, bytes - done, at + (off_t)done);
        if (some < 0) abort();
        if (some == 0) break;
        done += (size_t)some;
    }
    return before;
}

static void remember(int fd, off_t at, size_t bytes, char *before) {
    pthread_mutex_lock(&unsynced_lock);
    if (unsynced_count == UNSYNCED_MAX) abort();
    unsynced[unsynced_count++] = (struct written){fd, at, bytes, before};
    pthread_mutex_unlock(&unsynced_lock);
}

/* What was written to this file is decided: it is synced, or all or the second half of it is again what stood there
 * before, zeros or what an earlier use of the file left. Answers how many writes that were. */
static size_t settle(int fd, int loses, int keeps_half) {
    size_t settled = 0, left = 0;
    pthread_mutex_lock(&unsynced_lock);
    for (size_t i = 0; i < unsynced_count; i++) {
        struct written write = unsynced[i];
        if (write.fd != fd) {
            unsynced[left++] = write;
            continue;
        }
        settled++;
        for (size_t done = keeps_half ? write.bytes / 2 : 0; loses && done < write.bytes;) {
            ssize_t wrote = REAL(pwrite64)(fd, write.before + done, write.bytes - done, write.at + (off_t)done);
            if (wrote <= 0) abort();
            done += (size_t)wrote;
        }
        free(write.before);
    }
    unsynced_count = left;
    pthread_mutex_unlock(&unsynced_lock);
    return settled;
}

static int sync_file(int fd, int (*real_sync)(int)) {
    if (!is_ours_open(fd)) return real_sync(fd);
    atomic_fetch_add(&knobs[SYNCS], 1);
    int64_t delay_us = knob(SYNC_DELAY_US), error = knob(SYNC_ERRNO);
    if (delay_us) usleep((useconds_t)delay_us);
    if (error) {
        settle(fd, 1, 0);
        return fail(error);
    }
    if (knob(POWER_CUT) && settle(fd, 1, 1)) {
        real_sync(fd);
        kill(getpid(), SIGKILL);
        pause();
    }
    int synced = real_sync(fd);
    if (synced == 0) settle(fd, 0, 0);
    return synced;
}

int fdatasync(int fd) { return sync_file(fd, REAL(fdatasync)); }

int fsync(int fd) { return sync_file(fd, REAL(fsync)); }

int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    int changes = (flags & O_ACCMODE) != O_RDONLY || flags & (O_CREAT | O_TRUNC);
    if (changes && knob(CHANGE_ERRNO) && is_ours(path)) return fail(knob(CHANGE_ERRNO));
    return REAL(open64)(path, flags, mode);
}

ssize_t write(int fd, const void *bytes, size_t count) {
    int64_t error = knob(CHANGE_ERRNO) ? knob(CHANGE_ERRNO) : knob(GROW_ERRNO);
    if (error && is_ours_open(fd)) return fail(error);
    return REAL(write)(fd, bytes, count);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
    int ours = is_ours_open(fd);
    if (ours && knob(CHANGE_ERRNO)) return fail(knob(CHANGE_ERRNO));
    char *before = ours ? read_before(fd, at, count) : NULL;
    ssize_t wrote = REAL(pwrite64)(fd, bytes, count, at);
    if (ours && wrote > 0) {
        remember(fd, at, (size_t)wrote, before);
    } else {
        free(before);
    }
    return wrote;
}

int rename(const char *from, const char *to) {
    if (knob(CHANGE_ERRNO) && is_ours(to)) return fail(knob(CHANGE_ERRNO));
    return REAL(rename)(from, to);
}

int unlink(const char *path) {
    if (knob(CHANGE_ERRNO) && is_ours(path)) return fail(knob(CHANGE_ERRNO));
    return REAL(unlink)(path);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int told = REAL(clock_gettime)(clock, now);
    if (told == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += knob(CLOCK_OFFSET_S);
    return told;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    int told = REAL(gettimeofday)(now, zone);
    if (told == 0) now->tv_sec += knob(CLOCK_OFFSET_S);
    return told;
}
