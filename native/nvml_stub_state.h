/*
 * The state of the NVML stub: what it reports and how it misbehaves, read from a text file.
 *
 * It answers from a text file named by OUVRAGE_NVML_STATE, which a test replaces (by rename) while
 * programs run on it; the file is read again whenever its identity, size or time changes. It is a
 * simulation: it can report up to 16 GPUs, lose one, return errors, hang, crash, return garbage
 * and deliver Xid events. What it reports is never evidence about any real card.
 *
 * State, one `name=value` a line, '#' starts a comment:
 *   count=8                     how many GPUs the driver lists
 *   driver=575.10 nvml=12.575   version texts
 *   init=9                      what nvmlInit returns (0 is the default)
 *   hang=1 | crash=1            every call blocks for ever | dies of SIGSEGV
 *   still=1                     a process looks at the file once: a benchmark then times the program
 *                               around the driver and not the stub's looking for changes
 *   gpu3.NAME=VALUE             a field of GPU 3; -1 makes a field NOT_SUPPORTED
 *   gpu3.lost=1                 every call on it returns GPU_IS_LOST
 *   gpu3.hang=1 gpu3.crash=1    the same for calls on that GPU only
 *   gpu3.rc.power_mw=999        that field returns this error code
 *   proc=3 4711 1048576         pid 4711 holds that many bytes on GPU 3
 *   xid=1 3 79                  event number 1: GPU 3 reports Xid 79 (numbers must rise)
 *   gpu3.rc.power_limit_set=4   setting its power limit returns this error code
 *   gpu3.power_limit_hang=1     setting its power limit blocks for ever
 * A call that changes something (power limit, persistence) appends a line to the state file's name
 * with `.ctl` added. A power limit set that way stands in a file of its own, the state's name with
 * `.limit.3` added, which every process on the stub reads: as with a real driver it outlives whoever
 * set it, and holds the power drawn below it.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))
#define GPUS 16
#define TEXT 96
#define LINKS 18

enum {
    OK = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4,
    NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9, TIMEOUT = 10, GPU_IS_LOST = 15,
    VERSION_MISMATCH = 25, UNKNOWN = 999
};

/* Numeric fields of a GPU: name in the state file, default. */
#define FIELDS(X) \
    X(lost, 0) X(hang, 0) X(crash, 0) X(minor, 0) \
    X(memory_total, 85520809984) X(memory_used, 0) X(memory_reserved, 524288000) \
    X(bar1_total, 137438953472) X(bar1_used, 1048576) \
    X(util_gpu, 0) X(util_memory, 0) X(util_encoder, 0) X(util_decoder, 0) \
    X(power_mw, 71000) X(power_instant_mw, -1) X(energy_mj, 0) \
    X(power_limit_mw, 700000) X(power_limit_min_mw, 200000) X(power_limit_max_mw, 700000) \
    X(power_limit_default_mw, 700000) X(power_limit_set, 0) X(power_limit_hang, 0) \
    X(temperature_c, 35) X(temperature_memory_c, 45) \
    X(temperature_shutdown_c, 92) X(temperature_slowdown_c, 89) \
    X(clock_sm_mhz, 1980) X(clock_memory_mhz, 2619) X(clock_sm_max_mhz, 1980) \
    X(clock_memory_max_mhz, 2619) X(clock_reasons, 0) X(fan_percent, -1) X(pstate, 0) \
    X(persistence, 1) X(compute_mode, 0) X(display, 0) X(architecture, 9) X(cores, 16896) \
    X(capability_major, 9) X(capability_minor, 0) \
    X(ecc, 1) X(ecc_corrected_volatile, 0) X(ecc_uncorrected_volatile, 0) \
    X(ecc_corrected_aggregate, 0) X(ecc_uncorrected_aggregate, 0) \
    X(remapped_corrected, 0) X(remapped_uncorrected, 0) X(remapped_pending, 0) X(remapped_failed, 0) \
    X(pcie_tx_kb_s, 0) X(pcie_rx_kb_s, 0) X(pcie_generation, 5) X(pcie_generation_max, 5) \
    X(pcie_width, 16) X(pcie_width_max, 16) X(pcie_replays, 0) \
    X(nvlinks, 18) X(nvlinks_down, 0) X(mig, 0) X(recovery_action, 0)

enum field {
#define X(name, value) F_##name,
    FIELDS(X)
#undef X
    FIELD_COUNT
};
static const char *const field_names[] = {
#define X(name, value) #name,
    FIELDS(X)
#undef X
};
static const int64_t field_defaults[] = {
#define X(name, value) value,
    FIELDS(X)
#undef X
};

struct process { int gpu; unsigned pid; unsigned long long bytes; };
struct event { long number; int gpu, xid; };
struct gpu {
    int index;
    int64_t value[FIELD_COUNT];
    int error[FIELD_COUNT];
    char name[TEXT], uuid[TEXT], serial[TEXT], pci[TEXT];
};
static struct gpu gpus[GPUS];
static struct process processes[256];
static struct event events[256];
static int process_count, event_count, gpu_count, init_result, hang_all, crash_all, still;
static char driver[TEXT], nvml_version[TEXT];
static int cuda, initialised;
static struct stat seen;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const char *state_path(void) {
    const char *path = getenv("OUVRAGE_NVML_STATE");
    return path ? path : "/run/ouvrage-nvml-stub/state";
}

static void copy(char *to, const char *from, size_t size) { snprintf(to, size, "%s", from); }

static void defaults(void) {
    gpu_count = init_result = hang_all = crash_all = process_count = event_count = 0;
    cuda = 12080;
    copy(driver, "575.57.08", TEXT);
    copy(nvml_version, "12.575.57.08", TEXT);
    for (int g = 0; g < GPUS; g++) {
        struct gpu *gpu = &gpus[g];
        gpu->index = g;
        memcpy(gpu->value, field_defaults, sizeof field_defaults);
        memset(gpu->error, 0, sizeof gpu->error);
        gpu->value[F_minor] = g;
        copy(gpu->name, "Ouvrage Stub GPU", TEXT);
        snprintf(gpu->uuid, TEXT, "GPU-00000000-0000-4000-8000-%012x", g);
        snprintf(gpu->serial, TEXT, "9000000%03d", g);
        snprintf(gpu->pci, TEXT, "00000000:%02X:00.0", 0x10 + g);
    }
}

static int field_of(const char *name) {
    for (int f = 0; f < FIELD_COUNT; f++)
        if (!strcmp(field_names[f], name)) return f;
    return -1;
}

static void set_gpu(struct gpu *gpu, const char *name, const char *value) {
    int field;
    if (!strcmp(name, "name")) copy(gpu->name, value, TEXT);
    else if (!strcmp(name, "uuid")) copy(gpu->uuid, value, TEXT);
    else if (!strcmp(name, "serial")) copy(gpu->serial, value, TEXT);
    else if (!strcmp(name, "pci")) copy(gpu->pci, value, TEXT);
    else if (!strncmp(name, "rc.", 3)) {
        if ((field = field_of(name + 3)) >= 0) gpu->error[field] = atoi(value);
    } else if ((field = field_of(name)) >= 0) gpu->value[field] = (int64_t)strtoull(value, NULL, 0);
    else fprintf(stderr, "nvml stub: no field %s\n", name);
}

static void set(const char *name, const char *value) {
    int g, used = 0;
    if (sscanf(name, "gpu%d.%n", &g, &used) == 1 && used && g >= 0 && g < GPUS)
        set_gpu(&gpus[g], name + used, value);
    else if (!strcmp(name, "count")) gpu_count = atoi(value) > GPUS ? GPUS : atoi(value);
    else if (!strcmp(name, "init")) init_result = atoi(value);
    else if (!strcmp(name, "hang")) hang_all = atoi(value);
    else if (!strcmp(name, "crash")) crash_all = atoi(value);
    else if (!strcmp(name, "still")) still = atoi(value);
    else if (!strcmp(name, "cuda")) cuda = atoi(value);
    else if (!strcmp(name, "driver")) copy(driver, value, TEXT);
    else if (!strcmp(name, "nvml")) copy(nvml_version, value, TEXT);
    else if (!strcmp(name, "proc") && process_count < 256) {
        struct process *p = &processes[process_count];
        if (sscanf(value, "%d %u %llu", &p->gpu, &p->pid, &p->bytes) == 3) process_count++;
    } else if (!strcmp(name, "xid") && event_count < 256) {
        struct event *e = &events[event_count];
        if (sscanf(value, "%ld %d %d", &e->number, &e->gpu, &e->xid) == 3) event_count++;
    } else fprintf(stderr, "nvml stub: no setting %s\n", name);
}

static void load(void) {
    struct stat now;
    char line[512];
    if (still) return;
    if (stat(state_path(), &now)) { defaults(); init_result = DRIVER_NOT_LOADED; return; }
    if (now.st_ino == seen.st_ino && now.st_size == seen.st_size &&
        now.st_mtim.tv_sec == seen.st_mtim.tv_sec && now.st_mtim.tv_nsec == seen.st_mtim.tv_nsec)
        return;
    FILE *file = fopen(state_path(), "r");
    if (!file) return;
    seen = now;
    defaults();
    while (fgets(line, sizeof line, file)) {
        char *equals = strchr(line, '=');
        line[strcspn(line, "#\n")] = 0;
        if (!equals || !line[0]) continue;
        *equals = 0;
        set(line, equals + 1);
    }
    fclose(file);
}

static void fault(int hang, int crash) {
    if (crash) raise(SIGSEGV);
    while (hang) pause();
}

/* Every call: read the state, then misbehave as told. The lock is let go before hanging. */
static int enter(void) {
    pthread_mutex_lock(&lock);
    load();
    int hang = hang_all, crash = crash_all;
    pthread_mutex_unlock(&lock);
    fault(hang, crash);
    return initialised ? OK : UNINITIALIZED;
}

static int enter_gpu(struct gpu *gpu) {
    int result = enter();
    if (result) return result;
    if (gpu < gpus || gpu >= gpus + GPUS) return INVALID_ARGUMENT;
    fault((int)gpu->value[F_hang], (int)gpu->value[F_crash]);
    return gpu->value[F_lost] ? GPU_IS_LOST : OK;
}

static int answer(struct gpu *gpu, enum field field, int64_t *out) {
    int result = enter_gpu(gpu);
    if (result) return result;
    if (gpu->error[field]) return gpu->error[field];
    if (gpu->value[field] == -1) return NOT_SUPPORTED;
    *out = gpu->value[field];
    return OK;
}

static int answer32(struct gpu *gpu, enum field field, unsigned *out) {
    int64_t value = 0;
    int result = answer(gpu, field, &value);
    if (!result) *out = (unsigned)value;
    return result;
}

static int answer64(struct gpu *gpu, enum field field, unsigned long long *out) {
    int64_t value = 0;
    int result = answer(gpu, field, &value);
    if (!result) *out = (unsigned long long)value;
    return result;
}

static int text(const char *from, char *out, unsigned size) {
    if (strlen(from) + 1 > size) return INSUFFICIENT_SIZE;
    strcpy(out, from);
    return OK;
}
