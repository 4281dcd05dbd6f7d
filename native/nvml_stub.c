/*
 * A stand-in for libnvidia-ml.so.1, for tests and benchmarks on machines without a GPU: the calls.
 * What it reports comes from a text file, described in nvml_stub_state.h. It is a simulation and
 * never evidence about any real card. Build:
 *   cc -O2 -fvisibility=hidden -shared -fPIC -Wl,-soname,libnvidia-ml.so.1 \
 *      -o libnvidia-ml.so.1 nvml_stub.c -lpthread
 */
#include "nvml_stub_state.h"

#define U32(function, field) \
    API int function(struct gpu *gpu, unsigned *out) { return answer32(gpu, F_##field, out); }
#define U64(function, field) \
    API int function(struct gpu *gpu, unsigned long long *out) { return answer64(gpu, F_##field, out); }
#define PAIR(function, first, second) \
    API int function(struct gpu *gpu, unsigned *a, unsigned *b) { \
        int result = answer32(gpu, F_##first, a); \
        return result ? result : answer32(gpu, F_##second, b); }
#define STRING(function, member) \
    API int function(struct gpu *gpu, char *out, unsigned size) { \
        int result = enter_gpu(gpu); \
        return result ? result : text(gpu->member, out, size); }

API int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    pthread_mutex_lock(&lock);
    load();
    int result = init_result, hang = hang_all, crash = crash_all;
    if (!result) initialised++;
    pthread_mutex_unlock(&lock);
    fault(hang, crash);
    return result;
}
API int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
API int nvmlInit(void) { return nvmlInitWithFlags(0); }
API int nvmlShutdown(void) {
    if (!initialised) return UNINITIALIZED;
    initialised--;
    return OK;
}
API const char *nvmlErrorString(int code) {
    switch (code) {
        case OK: return "Success";
        case UNINITIALIZED: return "Uninitialized";
        case INVALID_ARGUMENT: return "Invalid Argument";
        case NOT_SUPPORTED: return "Not Supported";
        case NO_PERMISSION: return "Insufficient Permissions";
        case NOT_FOUND: return "Not Found";
        case DRIVER_NOT_LOADED: return "Driver Not Loaded";
        case TIMEOUT: return "Timeout";
        case GPU_IS_LOST: return "GPU is lost";
        default: return "Unknown Error";
    }
}

API int nvmlSystemGetDriverVersion(char *out, unsigned size) {
    int result = enter();
    return result ? result : text(driver, out, size);
}
API int nvmlSystemGetNVMLVersion(char *out, unsigned size) {
    int result = enter();
    return result ? result : text(nvml_version, out, size);
}
API int nvmlSystemGetCudaDriverVersion_v2(int *out) {
    int result = enter();
    if (!result) *out = cuda;
    return result;
}
API int nvmlSystemGetCudaDriverVersion(int *out) { return nvmlSystemGetCudaDriverVersion_v2(out); }

API int nvmlDeviceGetCount_v2(unsigned *out) {
    int result = enter();
    if (!result) *out = (unsigned)gpu_count;
    return result;
}
API int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct gpu **out) {
    int result = enter();
    if (result) return result;
    if (index >= (unsigned)gpu_count) return INVALID_ARGUMENT;
    *out = &gpus[index];
    return gpus[index].value[F_lost] ? GPU_IS_LOST : OK; /* as a real driver does */
}
API int nvmlDeviceGetHandleByUUID(const char *uuid, struct gpu **out) {
    int result = enter();
    if (result) return result;
    for (int g = 0; g < gpu_count; g++)
        if (!strcmp(gpus[g].uuid, uuid)) { *out = &gpus[g]; return OK; }
    return NOT_FOUND;
}
API int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, struct gpu **out) {
    int result = enter();
    if (result) return result;
    for (int g = 0; g < gpu_count; g++)
        if (!strcasecmp(gpus[g].pci, bus)) { *out = &gpus[g]; return OK; }
    return NOT_FOUND;
}
API int nvmlDeviceGetIndex(struct gpu *gpu, unsigned *out) {
    int result = enter_gpu(gpu);
    if (!result) *out = (unsigned)gpu->index;
    return result;
}

STRING(nvmlDeviceGetName, name)
STRING(nvmlDeviceGetUUID, uuid)
STRING(nvmlDeviceGetSerial, serial)
U32(nvmlDeviceGetMinorNumber, minor)
U32(nvmlDeviceGetPowerManagementDefaultLimit, power_limit_default_mw)
U64(nvmlDeviceGetTotalEnergyConsumption, energy_mj)
U64(nvmlDeviceGetCurrentClocksThrottleReasons, clock_reasons)
U64(nvmlDeviceGetCurrentClocksEventReasons, clock_reasons)
U32(nvmlDeviceGetFanSpeed, fan_percent)
U32(nvmlDeviceGetPerformanceState, pstate)
U32(nvmlDeviceGetPersistenceMode, persistence)
U32(nvmlDeviceGetComputeMode, compute_mode)
U32(nvmlDeviceGetDisplayMode, display)
U32(nvmlDeviceGetDisplayActive, display)
U32(nvmlDeviceGetArchitecture, architecture)
U32(nvmlDeviceGetNumGpuCores, cores)
U32(nvmlDeviceGetCurrPcieLinkGeneration, pcie_generation)
U32(nvmlDeviceGetMaxPcieLinkGeneration, pcie_generation_max)
U32(nvmlDeviceGetCurrPcieLinkWidth, pcie_width)
U32(nvmlDeviceGetMaxPcieLinkWidth, pcie_width_max)
U32(nvmlDeviceGetPcieReplayCounter, pcie_replays)
PAIR(nvmlDeviceGetPowerManagementLimitConstraints, power_limit_min_mw, power_limit_max_mw)
PAIR(nvmlDeviceGetCudaComputeCapability, capability_major, capability_minor)
PAIR(nvmlDeviceGetEccMode, ecc, ecc)
PAIR(nvmlDeviceGetMigMode, mig, mig)

static void limit_path(const struct gpu *gpu, const char *draft, char *out, size_t size) {
    snprintf(out, size, "%s.limit.%d%s", state_path(), gpu->index, draft);
}
static int limit_set(const struct gpu *gpu, unsigned *out) {
    char path[4096];
    if (still) return 0;
    limit_path(gpu, "", path, sizeof path);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    int found = fscanf(file, "%u", out) == 1;
    fclose(file);
    return found;
}
API int nvmlDeviceGetPowerManagementLimit(struct gpu *gpu, unsigned *out) {
    int result = answer32(gpu, F_power_limit_mw, out);
    if (!result) limit_set(gpu, out);
    return result;
}
static int drawn(struct gpu *gpu, enum field field, unsigned *out) {
    unsigned limit;
    int result = answer32(gpu, field, out);
    if (!result && limit_set(gpu, &limit) && *out > limit) *out = limit;
    return result;
}
API int nvmlDeviceGetPowerUsage(struct gpu *gpu, unsigned *out) { return drawn(gpu, F_power_mw, out); }
API int nvmlDeviceGetEnforcedPowerLimit(struct gpu *gpu, unsigned *out) {
    return nvmlDeviceGetPowerManagementLimit(gpu, out);
}

struct memory { unsigned long long total, free, used; };
struct memory_v2 { unsigned version; unsigned long long total, reserved, free, used; };
API int nvmlDeviceGetMemoryInfo(struct gpu *gpu, struct memory *out) {
    int result = answer64(gpu, F_memory_total, &out->total);
    if (!result) result = answer64(gpu, F_memory_used, &out->used);
    if (!result) out->free = out->total - out->used;
    return result;
}
API int nvmlDeviceGetMemoryInfo_v2(struct gpu *gpu, struct memory_v2 *out) {
    if (out->version != (sizeof *out | 2u << 24)) return VERSION_MISMATCH;
    int result = answer64(gpu, F_memory_total, &out->total);
    if (!result) result = answer64(gpu, F_memory_used, &out->used);
    if (!result) result = answer64(gpu, F_memory_reserved, &out->reserved);
    if (!result) out->free = out->total - out->used - out->reserved;
    return result;
}
API int nvmlDeviceGetBAR1MemoryInfo(struct gpu *gpu, struct memory *out) {
    int result = answer64(gpu, F_bar1_total, &out->total);
    if (!result) result = answer64(gpu, F_bar1_used, &out->used);
    if (!result) out->free = out->total - out->used;
    return result;
}

struct utilisation { unsigned gpu, memory; };
API int nvmlDeviceGetUtilizationRates(struct gpu *gpu, struct utilisation *out) {
    int result = answer32(gpu, F_util_gpu, &out->gpu);
    if (!result && gpu->value[F_mig]) return NOT_SUPPORTED; /* MIG reports no utilisation */
    return result ? result : answer32(gpu, F_util_memory, &out->memory);
}
API int nvmlDeviceGetEncoderUtilization(struct gpu *gpu, unsigned *out, unsigned *period_us) {
    *period_us = 167000;
    return answer32(gpu, F_util_encoder, out);
}
API int nvmlDeviceGetDecoderUtilization(struct gpu *gpu, unsigned *out, unsigned *period_us) {
    *period_us = 167000;
    return answer32(gpu, F_util_decoder, out);
}

API int nvmlDeviceGetTemperature(struct gpu *gpu, unsigned sensor, unsigned *out) {
    return sensor ? INVALID_ARGUMENT : answer32(gpu, F_temperature_c, out);
}
struct temperature { unsigned version, sensor; int celsius; };
API int nvmlDeviceGetTemperatureV(struct gpu *gpu, struct temperature *out) {
    return answer32(gpu, F_temperature_c, (unsigned *)&out->celsius);
}
API int nvmlDeviceGetTemperatureThreshold(struct gpu *gpu, unsigned which, unsigned *out) {
    return answer32(gpu, which ? F_temperature_slowdown_c : F_temperature_shutdown_c, out);
}
API int nvmlDeviceGetClockInfo(struct gpu *gpu, unsigned which, unsigned *out) {
    return answer32(gpu, which == 2 ? F_clock_memory_mhz : F_clock_sm_mhz, out);
}
API int nvmlDeviceGetMaxClockInfo(struct gpu *gpu, unsigned which, unsigned *out) {
    return answer32(gpu, which == 2 ? F_clock_memory_max_mhz : F_clock_sm_max_mhz, out);
}
API int nvmlDeviceGetSupportedClocksThrottleReasons(struct gpu *gpu, unsigned long long *out) {
    int result = enter_gpu(gpu);
    if (!result) *out = 0x1ff;
    return result;
}
API int nvmlDeviceGetSupportedClocksEventReasons(struct gpu *gpu, unsigned long long *out) {
    return nvmlDeviceGetSupportedClocksThrottleReasons(gpu, out);
}
API int nvmlDeviceGetPcieThroughput(struct gpu *gpu, unsigned received, unsigned *out) {
    return answer32(gpu, received ? F_pcie_rx_kb_s : F_pcie_tx_kb_s, out);
}

API int nvmlDeviceGetTotalEccErrors(struct gpu *gpu, unsigned uncorrected, unsigned aggregate,
                                    unsigned long long *out) {
    static const enum field which[2][2] = {
        {F_ecc_corrected_volatile, F_ecc_corrected_aggregate},
        {F_ecc_uncorrected_volatile, F_ecc_uncorrected_aggregate}};
    if (uncorrected > 1 || aggregate > 1) return INVALID_ARGUMENT;
    if (gpu >= gpus && gpu < gpus + GPUS && !gpu->value[F_ecc]) return NOT_SUPPORTED;
    return answer64(gpu, which[uncorrected][aggregate], out);
}
API int nvmlDeviceGetMemoryErrorCounter(struct gpu *gpu, unsigned uncorrected, unsigned aggregate,
                                        unsigned place, unsigned long long *out) {
    (void)place;
    return nvmlDeviceGetTotalEccErrors(gpu, uncorrected, aggregate, out);
}
API int nvmlDeviceGetRemappedRows(struct gpu *gpu, unsigned *corrected, unsigned *uncorrected,
                                  unsigned *pending, unsigned *failed) {
    int result = answer32(gpu, F_remapped_corrected, corrected);
    if (!result) result = answer32(gpu, F_remapped_uncorrected, uncorrected);
    if (!result) result = answer32(gpu, F_remapped_pending, pending);
    return result ? result : answer32(gpu, F_remapped_failed, failed);
}

struct pci {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char text[32];
};
API int nvmlDeviceGetPciInfo_v3(struct gpu *gpu, struct pci *out) {
    int result = enter_gpu(gpu);
    if (result) return result;
    memset(out, 0, sizeof *out);
    sscanf(gpu->pci, "%x:%x:%x", &out->domain, &out->bus, &out->device);
    snprintf(out->text, sizeof out->text, "%.31s", gpu->pci);
    snprintf(out->legacy, sizeof out->legacy, "%04X:%02X:%02X.0", out->domain & 0xffff,
             out->bus & 0xff, out->device & 0xff);
    out->id = 0x233010DE;
    return OK;
}
API int nvmlDeviceGetNvLinkState(struct gpu *gpu, unsigned link, unsigned *out) {
    int result = enter_gpu(gpu);
    if (result) return result;
    if (link >= (unsigned)gpu->value[F_nvlinks]) return INVALID_ARGUMENT;
    *out = !(gpu->value[F_nvlinks_down] >> link & 1);
    return OK;
}
API int nvmlDeviceGetTopologyCommonAncestor(struct gpu *a, struct gpu *b, int *out) {
    int result = enter_gpu(a);
    if (!result) result = enter_gpu(b);
    if (!result) *out = a->index / 4 == b->index / 4 ? 20 : 40;
    return result;
}
API int nvmlDeviceGetMaxMigDeviceCount(struct gpu *gpu, unsigned *out) {
    int result = enter_gpu(gpu);
    if (!result) *out = gpu->value[F_mig] ? 7 : 0;
    return result;
}
API int nvmlDeviceGetMigDeviceHandleByIndex(struct gpu *gpu, unsigned index, struct gpu **out) {
    int result = enter_gpu(gpu);
    (void)index, (void)out;
    return result ? result : NOT_FOUND;
}
API int nvmlDeviceIsMigDeviceHandle(struct gpu *gpu, unsigned *out) {
    int result = enter_gpu(gpu);
    if (!result) *out = 0;
    return result;
}
API int nvmlDeviceGetDriverModel_v2(struct gpu *gpu, unsigned *now, unsigned *pending) {
    (void)now, (void)pending;
    int result = enter_gpu(gpu);
    return result ? result : NOT_SUPPORTED;
}
API int nvmlDeviceGetDriverModel(struct gpu *gpu, unsigned *now, unsigned *pending) {
    return nvmlDeviceGetDriverModel_v2(gpu, now, pending);
}

struct process_v3 { unsigned pid; unsigned long long bytes; unsigned instance, compute; };
API int nvmlDeviceGetComputeRunningProcesses_v3(struct gpu *gpu, unsigned *count,
                                                struct process_v3 *out) {
    int result = enter_gpu(gpu);
    unsigned room = *count, found = 0;
    if (result) return result;
    for (int i = 0; i < process_count; i++) {
        if (processes[i].gpu != gpu->index) continue;
        if (out && found < room)
            out[found] = (struct process_v3){processes[i].pid, processes[i].bytes, ~0u, ~0u};
        found++;
    }
    *count = found;
    return found > room ? INSUFFICIENT_SIZE : OK;
}
API int nvmlDeviceGetComputeRunningProcesses_v2(struct gpu *gpu, unsigned *count,
                                                struct process_v3 *out) {
    return nvmlDeviceGetComputeRunningProcesses_v3(gpu, count, out);
}
static int no_processes(struct gpu *gpu, unsigned *count) {
    int result = enter_gpu(gpu);
    *count = 0;
    return result;
}
API int nvmlDeviceGetGraphicsRunningProcesses_v3(struct gpu *gpu, unsigned *count, void *out) {
    (void)out;
    return no_processes(gpu, count);
}
API int nvmlDeviceGetMPSComputeRunningProcesses_v3(struct gpu *gpu, unsigned *count, void *out) {
    (void)out;
    return no_processes(gpu, count);
}
struct process_share { unsigned pid; unsigned long long at_us; unsigned sm, memory, enc, dec; };
API int nvmlDeviceGetProcessUtilization(struct gpu *gpu, struct process_share *out, unsigned *count,
                                        unsigned long long since_us) {
    struct process_v3 held[256];
    struct timespec now;
    unsigned found = 256, room = *count;
    (void)since_us;
    int result = nvmlDeviceGetComputeRunningProcesses_v3(gpu, &found, held);
    if (result) return result;
    if (!found) return NOT_FOUND;
    *count = found;
    if (!out || room < found) return INSUFFICIENT_SIZE;
    clock_gettime(CLOCK_REALTIME, &now);
    for (unsigned i = 0; i < found; i++)
        out[i] = (struct process_share){
            held[i].pid, now.tv_sec * 1000000ULL + now.tv_nsec / 1000,
            (unsigned)gpu->value[F_util_gpu] / found, (unsigned)gpu->value[F_util_memory] / found,
            0, 0};
    return OK;
}

struct field_value {
    unsigned id, scope;
    long long at, latency;
    unsigned type, result;
    union { double number; unsigned u32; unsigned long long u64; } value;
};
static int one_field(struct gpu *gpu, struct field_value *f) {
    switch (f->id) { /* numbers from nvml.h: 82 memory temperature, 83 energy, 185/186 power */
        case 82: f->type = 1; return answer32(gpu, F_temperature_memory_c, &f->value.u32);
        case 83: f->type = 3; return answer64(gpu, F_energy_mj, &f->value.u64);
        case 185: f->type = 1; return drawn(gpu, F_power_mw, &f->value.u32);
        case 186:
            f->type = 1;
            return drawn(gpu, gpu->value[F_power_instant_mw] == -1 ? F_power_mw
                                                                  : F_power_instant_mw,
                         &f->value.u32);
        case 230: f->type = 1; return answer32(gpu, F_recovery_action, &f->value.u32);
        default: return NOT_SUPPORTED;
    }
}
API int nvmlDeviceGetFieldValues(struct gpu *gpu, int count, struct field_value *fields) {
    int result = enter_gpu(gpu);
    if (result) return result;
    for (int i = 0; i < count; i++) fields[i].result = (unsigned)one_field(gpu, &fields[i]);
    return OK;
}

struct event_set { long delivered; unsigned gpus; };
struct event_data { struct gpu *gpu; unsigned long long type, data; unsigned instance, compute; };
API int nvmlEventSetCreate(struct event_set **out) {
    int result = enter();
    if (result) return result;
    if (!(*out = calloc(1, sizeof **out))) return UNKNOWN;
    for (int i = 0; i < event_count; i++)
        if (events[i].number > (*out)->delivered) (*out)->delivered = events[i].number;
    return OK;
}
API int nvmlDeviceGetSupportedEventTypes(struct gpu *gpu, unsigned long long *out) {
    int result = enter_gpu(gpu);
    if (!result) *out = 1 | 2 | 8;
    return result;
}
API int nvmlDeviceRegisterEvents(struct gpu *gpu, unsigned long long types, struct event_set *set_) {
    int result = enter_gpu(gpu);
    if (result) return result;
    if (types & ~11ULL) return NOT_SUPPORTED;
    set_->gpus |= 1u << gpu->index;
    return OK;
}
static const struct event *next_event(const struct event_set *set_) {
    const struct event *best = NULL;
    for (int i = 0; i < event_count; i++) {
        const struct event *e = &events[i];
        if (e->number > set_->delivered && e->gpu >= 0 && e->gpu < GPUS &&
            set_->gpus >> e->gpu & 1 && (!best || e->number < best->number)) best = e;
    }
    return best;
}
API int nvmlEventSetWait_v2(struct event_set *set_, struct event_data *out, unsigned timeout_ms) {
    for (unsigned waited = 0;; waited += 20) {
        int result = enter();
        if (result) return result;
        const struct event *event = next_event(set_);
        if (event) {
            set_->delivered = event->number;
            *out = (struct event_data){&gpus[event->gpu], 8, (unsigned)event->xid, ~0u, ~0u};
            return OK;
        }
        if (waited >= timeout_ms) return TIMEOUT;
        nanosleep(&(struct timespec){0, 20000000}, NULL);
    }
}
API int nvmlEventSetWait(struct event_set *set_, struct event_data *out, unsigned timeout_ms) {
    return nvmlEventSetWait_v2(set_, out, timeout_ms);
}
API int nvmlEventSetFree(struct event_set *set_) { free(set_); return OK; }

static int control(struct gpu *gpu, const char *what, unsigned value) {
    char path[4096];
    int result = enter_gpu(gpu);
    if (result) return result;
    snprintf(path, sizeof path, "%s.ctl", state_path());
    FILE *file = fopen(path, "a");
    if (!file) return NO_PERMISSION;
    fprintf(file, "%s gpu=%d value=%u\n", what, gpu->index, value);
    fclose(file);
    return OK;
}
API int nvmlDeviceSetPowerManagementLimit(struct gpu *gpu, unsigned milliwatts) {
    char path[4096], draft[4096];
    int result = enter_gpu(gpu);
    if (result) return result;
    fault((int)gpu->value[F_power_limit_hang], 0);
    if (gpu->error[F_power_limit_set]) return gpu->error[F_power_limit_set];
    if (milliwatts < gpu->value[F_power_limit_min_mw] || milliwatts > gpu->value[F_power_limit_max_mw])
        return INVALID_ARGUMENT;
    limit_path(gpu, "", path, sizeof path);
    limit_path(gpu, ".new", draft, sizeof draft);
    FILE *file = fopen(draft, "w");
    if (!file) return NO_PERMISSION;
    fprintf(file, "%u\n", milliwatts);
    if (fclose(file) || rename(draft, path)) return UNKNOWN;
    return control(gpu, "power_limit_mw", milliwatts);
}
API int nvmlDeviceSetPersistenceMode(struct gpu *gpu, unsigned mode) {
    return control(gpu, "persistence", mode);
}
