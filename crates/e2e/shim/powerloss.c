/*
 * Power loss simulation: preload this library and only what was fsynced survives.
 *
 * kill -9 does not reveal a missing fsync, because the page cache survives the process. With this
 * library every file below POWERLOSS_ROOT has an image below POWERLOSS_IMAGE, and the image changes
 * only when the program syncs:
 *
 *   - bytes reach a file's image when the file is fsynced or fdatasynced;
 *   - a name (created, removed or renamed) reaches the image when its directory is fsynced.
 *
 * After the kill the test replaces POWERLOSS_ROOT by a copy of the image: the disk after a power
 * loss. At start the two trees must be equal. A kill in the middle of a publication leaves a torn
 * image, as does a power loss in the middle of an fsync.
 *
 * POWERLOSS_NORMAL=1 is the control. It drops exactly the syncs that SQLite does not make with
 * synchronous=NORMAL: a write-ahead log is synced only when a checkpoint is about to write to its
 * database. A test that does not report lost writes under this control is broken.
 *
 * The library also injects faults. While POWERLOSS_IMAGE/.images/full exists, writes to a
 * write-ahead log fail with ENOSPC; while .images/broken exists, syncs of one fail with EIO.
 *
 * Limits: it intercepts write, writev, pwrite, pwritev, ftruncate, fallocate, open, unlink, rename,
 * link and mkdir called through libc. Bytes written through a shared mapping are never published
 * (SQLite maps only its wal-index, which need not survive). It does not reorder writes between two
 * syncs and does not simulate a disk that ignores syncs.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* A data directory has a few files per domain; more than this is an error in the test. */
#define MAX_FILES 1024
/* Separate ranges per file before they are merged into one: commits append, so a few are usual. */
#define MAX_RANGES 256
/* Names changed but not yet synced. */
#define MAX_NAMES 4096
/* Bytes copied at a time when publishing. */
#define CHUNK (1 << 20)

struct range { off_t from, to; };

/* One inode below the root, and its changes that are not in the image yet. */
struct file {
    dev_t dev;
    ino_t ino;
    int image; /* descriptor of POWERLOSS_IMAGE/.images/<index> */
    int held_back; /* control: synced by the program, not yet published */
    off_t shrunk_to; /* minimum length since the last publication */
    size_t ranges;
    struct range range[MAX_RANGES];
    char path[PATH_MAX]; /* last known name below the root, for the control */
};

enum change { NAMED, REMOVED, MADE_DIRECTORY };

/* A changed name whose directory was not fsynced yet. */
struct name {
    enum change change;
    int synced; /* its directory was synced, but the image has no path to it yet */
    struct file *file;
    char path[PATH_MAX]; /* relative to the root */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH_MAX], image_root[PATH_MAX];
static int active, control;
static struct file *files[MAX_FILES];
static size_t file_count;
static struct name *names[MAX_NAMES];
static size_t name_count;

static void stop(const char *what) {
    dprintf(2, "powerloss: %s: %s\n", what, strerror(errno));
    _exit(97);
}

#define REAL(returns, name, ...)                                                                                       \
    static returns (*real_##name)(__VA_ARGS__);                                                                        \
    static void load_##name(void) {                                                                                    \
        if (!real_##name && !(*(void **)(&real_##name) = dlsym(RTLD_NEXT, #name))) stop("no real " #name);             \
    }
REAL(int, open, const char *, int, ...)
REAL(int, open64, const char *, int, ...)
REAL(int, openat, int, const char *, int, ...)
REAL(int, openat64, int, const char *, int, ...)
REAL(ssize_t, write, int, const void *, size_t)
REAL(ssize_t, writev, int, const struct iovec *, int)
REAL(ssize_t, pwrite, int, const void *, size_t, off_t)
REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t)
REAL(ssize_t, pwritev, int, const struct iovec *, int, off_t)
REAL(ssize_t, pwritev64, int, const struct iovec *, int, off64_t)
REAL(int, ftruncate, int, off_t)
REAL(int, ftruncate64, int, off64_t)
REAL(int, posix_fallocate, int, off_t, off_t)
REAL(int, posix_fallocate64, int, off64_t, off64_t)
REAL(int, fsync, int)
REAL(int, fdatasync, int)
REAL(int, unlink, const char *)
REAL(int, unlinkat, int, const char *, int)
REAL(int, rename, const char *, const char *)
REAL(int, renameat, int, const char *, int, const char *)
REAL(int, link, const char *, const char *)
REAL(int, linkat, int, const char *, int, const char *, int)
REAL(int, mkdir, const char *, mode_t)

__attribute__((constructor)) static void start(void) {
    load_open(); load_open64(); load_openat(); load_openat64();
    load_write(); load_writev(); load_pwrite(); load_pwrite64(); load_pwritev(); load_pwritev64();
    load_ftruncate(); load_ftruncate64(); load_posix_fallocate(); load_posix_fallocate64();
    load_fsync(); load_fdatasync();
    load_unlink(); load_unlinkat(); load_rename(); load_renameat(); load_link(); load_linkat(); load_mkdir();
    const char *at = getenv("POWERLOSS_ROOT"), *to = getenv("POWERLOSS_IMAGE");
    if (!at || !to) return;
    if (!realpath(at, root)) stop("POWERLOSS_ROOT");
    if (!realpath(to, image_root)) stop("POWERLOSS_IMAGE");
    const char *normal = getenv("POWERLOSS_NORMAL");
    control = normal && *normal == '1';
    active = 1;
}

/* ---- names ---- */

/* The path below the root that `path` names. It need not exist, but its directory must. */
static int below_root(int dir, const char *path, char out[PATH_MAX]) {
    char joined[PATH_MAX], parent[PATH_MAX];
    if (path[0] == '/' || dir == AT_FDCWD) {
        if (snprintf(joined, sizeof joined, "%s", path) >= (int)sizeof joined) return 0;
    } else {
        char link_path[64];
        snprintf(link_path, sizeof link_path, "/proc/self/fd/%d", dir);
        char at[PATH_MAX];
        ssize_t size = readlink(link_path, at, sizeof at - 1);
        if (size < 0) return 0;
        at[size] = 0;
        if (snprintf(joined, sizeof joined, "%s/%s", at, path) >= (int)sizeof joined) return 0;
    }
    char *slash = strrchr(joined, '/');
    const char *base = slash ? slash + 1 : joined;
    if (!slash) {
        if (!realpath(".", parent)) return 0;
    } else if (slash == joined) {
        parent[0] = 0;
    } else {
        *slash = 0;
        if (!realpath(joined, parent)) return 0;
    }
    size_t length = strlen(root);
    if (strncmp(parent, root, length) != 0 || (parent[length] != 0 && parent[length] != '/')) return 0;
    const char *inside = parent[length] == '/' ? parent + length + 1 : "";
    int size = snprintf(out, PATH_MAX, "%s%s%s", inside, *inside ? "/" : "", base);
    return size < PATH_MAX;
}

static void image_path(const char *relative, char out[PATH_MAX]) {
    if (snprintf(out, PATH_MAX, "%s/%s", image_root, relative) >= PATH_MAX) stop("path too long");
}

static void changed(enum change change, const char *path, struct file *file) {
    if (name_count == MAX_NAMES) stop("too many unsynced names");
    struct name *name = calloc(1, sizeof *name);
    if (!name) stop("memory");
    name->change = change;
    name->file = file;
    snprintf(name->path, sizeof name->path, "%s", path);
    names[name_count++] = name;
}

/* Whether `path` lies directly in `directory` (both relative to the root; "" is the root). */
static int lies_in(const char *path, const char *directory) {
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    return strlen(directory) == length && strncmp(path, directory, length) == 0;
}

static int publish_name(struct name *name) {
    char to[PATH_MAX], from[PATH_MAX];
    image_path(name->path, to);
    /* Changes in a directory that is not in the image yet are deferred, in order. */
    snprintf(from, sizeof from, "%s", to);
    *strrchr(from, '/') = 0;
    if (access(from, F_OK) != 0) return 0;
    switch (name->change) {
    case MADE_DIRECTORY: return real_mkdir(to, 0777) == 0 || errno == EEXIST;
    case REMOVED: return real_unlink(to) == 0 || errno == ENOENT;
    case NAMED:
        snprintf(from, sizeof from, "/proc/self/fd/%d", name->file->image);
        if (real_unlink(to) != 0 && errno != ENOENT) return 0;
        return real_linkat(AT_FDCWD, from, AT_FDCWD, to, AT_SYMLINK_FOLLOW) == 0;
    }
    return 0;
}

static void publish_directory(const char *directory) {
    for (size_t i = 0; i < name_count; i++)
        if (lies_in(names[i]->path, directory)) names[i]->synced = 1;
    /* A new directory in the image enables deferred changes in it: repeat until none is left. */
    for (int moved = 1; moved;) {
        moved = 0;
        size_t kept = 0;
        for (size_t i = 0; i < name_count; i++) {
            if (names[i]->synced && publish_name(names[i])) {
                moved = 1;
                free(names[i]);
            } else {
                names[kept++] = names[i];
            }
        }
        name_count = kept;
    }
}

/* ---- bytes ---- */

static struct file *find(dev_t dev, ino_t ino) {
    for (size_t i = file_count; i-- > 0;)
        if (files[i]->ino == ino && files[i]->dev == dev) return files[i];
    return NULL;
}

static struct file *file_of(int fd) {
    struct stat status;
    if (!active || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return NULL;
    return find(status.st_dev, status.st_ino);
}

static void dirty(struct file *file, off_t from, off_t to) {
    if (from >= to) return;
    for (size_t i = 0; i < file->ranges; i++) {
        struct range *range = &file->range[i];
        if (from <= range->to && to >= range->from) {
            if (from < range->from) range->from = from;
            if (to > range->to) range->to = to;
            return;
        }
    }
    if (file->ranges == MAX_RANGES) {
        /* The bytes between are in the file too, so publishing more than was written is harmless. */
        for (size_t i = 1; i < file->ranges; i++) {
            if (file->range[i].from < file->range[0].from) file->range[0].from = file->range[i].from;
            if (file->range[i].to > file->range[0].to) file->range[0].to = file->range[i].to;
        }
        file->ranges = 1;
    }
    file->range[file->ranges++] = (struct range){from, to};
}

static void shrunk(struct file *file, off_t size) {
    if (size < file->shrunk_to) file->shrunk_to = size;
}

static void copy(int from, int to, off_t at, off_t end) {
    static char buffer[CHUNK];
    while (at < end) {
        size_t want = end - at < CHUNK ? (size_t)(end - at) : CHUNK;
        ssize_t got = pread(from, buffer, want, at);
        if (got < 0) stop("reading what was synced");
        if (got == 0) break;
        if (real_pwrite(to, buffer, (size_t)got, at) != got) stop("writing the image");
        at += got;
    }
}

/* Copies the changes of `file` to its image. Reopens it, because the descriptor may be write-only. */
static void publish(struct file *file, int fd) {
    char again[64];
    struct stat status;
    snprintf(again, sizeof again, "/proc/self/fd/%d", fd);
    int from = real_open(again, O_RDONLY | O_CLOEXEC);
    if (from < 0 || fstat(from, &status) != 0) stop("opening what was synced");
    if (file->shrunk_to != INT64_MAX && real_ftruncate(file->image, file->shrunk_to) != 0) stop("image size");
    for (size_t i = 0; i < file->ranges; i++) {
        off_t end = file->range[i].to < status.st_size ? file->range[i].to : status.st_size;
        copy(from, file->image, file->range[i].from, end);
    }
    if (real_ftruncate(file->image, status.st_size) != 0) stop("image size");
    file->ranges = 0;
    file->shrunk_to = INT64_MAX;
    file->held_back = 0;
    close(from);
}

static int is_log(const char *path) {
    size_t length = strlen(path);
    return length > 4 && strcmp(path + length - 4, "-wal") == 0;
}

/* Whether the test has injected this fault. */
static int is_sick(const struct file *file, const char *how) {
    char flag[PATH_MAX];
    if (!is_log(file->path)) return 0;
    image_path(how, flag);
    return access(flag, F_OK) == 0;
}

/* Control: a checkpoint syncs the log before it writes to the database. */
static void before_write(struct file *file) {
    if (!control || is_log(file->path)) return;
    size_t length = strlen(file->path);
    for (size_t i = 0; i < file_count; i++) {
        struct file *log = files[i];
        if (!log->held_back || strlen(log->path) != length + 4) continue;
        if (strncmp(log->path, file->path, length) != 0) continue;
        char at[PATH_MAX];
        if (snprintf(at, sizeof at, "%s/%s", root, log->path) >= (int)sizeof at) stop("path too long");
        int fd = real_open(at, O_RDONLY | O_CLOEXEC);
        if (fd < 0) continue;
        publish(log, fd);
        close(fd);
    }
}

static struct file *remember(const struct stat *status, const char *path) {
    if (file_count == MAX_FILES) stop("too many files");
    struct file *file = calloc(1, sizeof *file);
    if (!file) stop("memory");
    file->dev = status->st_dev;
    file->ino = status->st_ino;
    file->shrunk_to = INT64_MAX;
    snprintf(file->path, sizeof file->path, "%s", path);
    files[file_count++] = file;
    return file;
}

static void opened(int fd, const char *path, int was_there, int truncated) {
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return;
    struct file *file = find(status.st_dev, status.st_ino);
    if (file && was_there) {
        if (truncated) shrunk(file, 0);
        return;
    }
    /* A new file may reuse the inode of a deleted one; the later record is found first. */
    file = remember(&status, path);
    char durable[PATH_MAX], store[PATH_MAX], number[64];
    snprintf(number, sizeof number, ".images/%d-%zu", getpid(), file_count);
    image_path(number, store);
    image_path(path, durable);
    if (was_there && real_link(durable, store) == 0) {
        file->image = real_open(store, O_RDWR | O_CLOEXEC);
        if (truncated) shrunk(file, 0);
    } else {
        file->image = real_open(store, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        dirty(file, 0, status.st_size);
        changed(NAMED, path, file);
    }
    if (file->image < 0) stop("opening an image");
}

/* ---- the calls ---- */

static int open_any(int which, int dir, const char *path, int flags, mode_t mode) {
    char inside[PATH_MAX];
    int known = active && below_root(dir, path, inside);
    if (known) pthread_mutex_lock(&lock);
    struct stat status;
    int was_there = known && fstatat(dir, path, &status, 0) == 0;
    int fd;
    switch (which) {
    case 0: fd = real_open(path, flags, mode); break;
    case 1: fd = real_open64(path, flags, mode); break;
    case 2: fd = real_openat(dir, path, flags, mode); break;
    default: fd = real_openat64(dir, path, flags, mode); break;
    }
    int error = errno;
    if (fd >= 0 && known) opened(fd, inside, was_there, (flags & O_TRUNC) != 0);
    if (known) pthread_mutex_unlock(&lock);
    errno = error;
    return fd;
}

#define MODE(flags)                                                                                                    \
    mode_t mode = 0;                                                                                                   \
    if (((flags) & O_CREAT) || ((flags) & O_TMPFILE) == O_TMPFILE) {                                                   \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        mode = va_arg(rest, mode_t);                                                                                   \
        va_end(rest);                                                                                                  \
    }

int open(const char *path, int flags, ...) { MODE(flags) load_open(); return open_any(0, AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags) load_open64(); return open_any(1, AT_FDCWD, path, flags, mode); }
int openat(int dir, const char *path, int flags, ...) { MODE(flags) load_openat(); return open_any(2, dir, path, flags, mode); }
int openat64(int dir, const char *path, int flags, ...) { MODE(flags) load_openat64(); return open_any(3, dir, path, flags, mode); }

/* Runs one write under the lock, so that the recorded range is published. */
#define WRITING(fd, call, at, load)                                                                                    \
    struct stat status;                                                                                                \
    load();                                                                                                            \
    /* Sockets and pipes may block: they stay outside the lock. */                                                     \
    if (!active || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return call;                                   \
    pthread_mutex_lock(&lock);                                                                                         \
    struct file *file = find(status.st_dev, status.st_ino);                                                            \
    if (file) before_write(file);                                                                                      \
    int full = file && is_sick(file, ".images/full");                                                                  \
    ssize_t size = full ? -1 : call;                                                                                   \
    int error = full ? ENOSPC : errno;                                                                                 \
    if (file && size > 0) dirty(file, at, at + size);                                                                  \
    pthread_mutex_unlock(&lock);                                                                                       \
    errno = error;                                                                                                     \
    return size;

ssize_t write(int fd, const void *bytes, size_t count) { WRITING(fd, real_write(fd, bytes, count), lseek(fd, 0, SEEK_CUR) - size, load_write) }
ssize_t writev(int fd, const struct iovec *parts, int count) { WRITING(fd, real_writev(fd, parts, count), lseek(fd, 0, SEEK_CUR) - size, load_writev) }
ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) { WRITING(fd, real_pwrite(fd, bytes, count, at), at, load_pwrite) }
ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) { WRITING(fd, real_pwrite64(fd, bytes, count, at), at, load_pwrite64) }
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) { WRITING(fd, real_pwritev(fd, parts, count, at), at, load_pwritev) }
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t at) { WRITING(fd, real_pwritev64(fd, parts, count, at), at, load_pwritev64) }

static int resized(int fd, int result) {
    int error = errno;
    struct stat status;
    struct file *file = result == 0 ? file_of(fd) : NULL;
    if (file && fstat(fd, &status) == 0) shrunk(file, status.st_size);
    errno = error;
    return result;
}

#define RESIZING(call, load)                                                                                           \
    load();                                                                                                            \
    if (!active) return call;                                                                                          \
    pthread_mutex_lock(&lock);                                                                                         \
    int result = resized(fd, call);                                                                                    \
    pthread_mutex_unlock(&lock);                                                                                       \
    return result;

int ftruncate(int fd, off_t size) { RESIZING(real_ftruncate(fd, size), load_ftruncate) }
int ftruncate64(int fd, off64_t size) { RESIZING(real_ftruncate64(fd, size), load_ftruncate64) }
int posix_fallocate(int fd, off_t at, off_t size) { RESIZING(real_posix_fallocate(fd, at, size), load_posix_fallocate) }
int posix_fallocate64(int fd, off64_t at, off64_t size) { RESIZING(real_posix_fallocate64(fd, at, size), load_posix_fallocate64) }

/* Publish only after the real sync succeeded, as reported to the program. */
static int synced(int fd, int result) {
    if (result != 0 || !active) return result;
    struct stat status;
    if (fstat(fd, &status) != 0) return result;
    pthread_mutex_lock(&lock);
    struct file *file = S_ISREG(status.st_mode) ? find(status.st_dev, status.st_ino) : NULL;
    if (file && control && is_log(file->path)) {
        file->held_back = 1;
    } else if (file) {
        publish(file, fd);
    } else if (S_ISDIR(status.st_mode)) {
        char link_path[64], at[PATH_MAX];
        snprintf(link_path, sizeof link_path, "/proc/self/fd/%d", fd);
        ssize_t size = readlink(link_path, at, sizeof at - 1);
        size_t length = strlen(root);
        if (size > 0) {
            at[size] = 0;
            if (strcmp(at, root) == 0) publish_directory("");
            else if (strncmp(at, root, length) == 0 && at[length] == '/') publish_directory(at + length + 1);
        }
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static int cannot_sync(int fd) {
    pthread_mutex_lock(&lock);
    const struct file *file = file_of(fd);
    int broken = file && is_sick(file, ".images/broken");
    pthread_mutex_unlock(&lock);
    if (broken) errno = EIO;
    return broken;
}

int fsync(int fd) { load_fsync(); return cannot_sync(fd) ? -1 : synced(fd, real_fsync(fd)); }
int fdatasync(int fd) { load_fdatasync(); return cannot_sync(fd) ? -1 : synced(fd, real_fdatasync(fd)); }

#define NAMING(from_dir, from, call, after)                                                                            \
    char old_path[PATH_MAX];                                                                                           \
    struct stat status;                                                                                                \
    if (!active) return call;                                                                                          \
    int inside = below_root(from_dir, from, old_path);                                                                 \
    pthread_mutex_lock(&lock);                                                                                         \
    int there = inside && fstatat(from_dir, from, &status, AT_SYMLINK_NOFOLLOW) == 0;                                  \
    int result = call;                                                                                                 \
    int error = errno;                                                                                                 \
    if (result == 0) { after }                                                                                         \
    pthread_mutex_unlock(&lock);                                                                                       \
    errno = error;                                                                                                     \
    return result;

int unlink(const char *path) {
    load_unlink();
    NAMING(AT_FDCWD, path, real_unlink(path), if (there) changed(REMOVED, old_path, NULL);)
}

int unlinkat(int dir, const char *path, int flags) {
    load_unlinkat();
    NAMING(dir, path, real_unlinkat(dir, path, flags), if (there && !(flags & AT_REMOVEDIR)) changed(REMOVED, old_path, NULL);)
}

/* A file renamed without having been opened here has its image under its old name. */
static void renamed(const struct stat *status, int there, const char *old_path, int to_dir, const char *to, int keep) {
    char new_path[PATH_MAX];
    if (!there || !S_ISREG(status->st_mode)) return;
    struct file *file = find(status->st_dev, status->st_ino);
    if (!file) {
        int fd = real_openat(to_dir, to, O_RDONLY | O_CLOEXEC);
        if (fd < 0) stop("opening a renamed file");
        opened(fd, old_path, 1, 0);
        close(fd);
        file = find(status->st_dev, status->st_ino);
    }
    if (file && below_root(to_dir, to, new_path)) {
        changed(NAMED, new_path, file);
        snprintf(file->path, sizeof file->path, "%s", new_path);
    }
    if (!keep) changed(REMOVED, old_path, NULL);
}

int rename(const char *from, const char *to) {
    load_rename();
    NAMING(AT_FDCWD, from, real_rename(from, to), renamed(&status, there, old_path, AT_FDCWD, to, 0);)
}

int renameat(int from_dir, const char *from, int to_dir, const char *to) {
    load_renameat();
    NAMING(from_dir, from, real_renameat(from_dir, from, to_dir, to), renamed(&status, there, old_path, to_dir, to, 0);)
}

int link(const char *from, const char *to) {
    load_link();
    NAMING(AT_FDCWD, from, real_link(from, to), renamed(&status, there, old_path, AT_FDCWD, to, 1);)
}

int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags) {
    load_linkat();
    NAMING(from_dir, from, real_linkat(from_dir, from, to_dir, to, flags), renamed(&status, there, old_path, to_dir, to, 1);)
}

int mkdir(const char *path, mode_t mode) {
    load_mkdir();
    NAMING(AT_FDCWD, path, real_mkdir(path, mode), if (inside && !there) changed(MADE_DIRECTORY, old_path, NULL);)
}
