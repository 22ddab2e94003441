/* SPDX-License-Identifier: MIT
 * The device for ggml's scheduler, and what ggml finds when it loads the library. It accompanies the CPU and uses its
 * memory. */
#include <string.h>

#include <rapt/rapt.h>

#include "backend.h"
#include "ggml-backend-impl.h"
#include "log.h"
#include "plans.h"
#include "release.h"

static const char *name_of(ggml_backend_dev_t device) {
    (void)device;
    return "rapt";
}

static const char *describe(ggml_backend_dev_t device) {
    (void)device;
    return "rapt " RAPT_VERSION_STRING ", attention on the CPU";
}

static void report_memory(ggml_backend_dev_t device, size_t *free, size_t *total) {
    (void)device;
    *free = *total = 0; /* none of its own */
}

static enum ggml_backend_dev_type type_of(ggml_backend_dev_t device) {
    (void)device;
    return GGML_BACKEND_DEVICE_TYPE_ACCEL;
}

static void report(ggml_backend_dev_t device, struct ggml_backend_dev_props *props) {
    memset(props, 0, sizeof *props);
    props->name = name_of(device), props->description = describe(device), props->type = type_of(device);
    props->caps.buffer_from_host_ptr = true;
    props->caps.mmap_support = true;
}

static ggml_backend_t make_backend(ggml_backend_dev_t device, const char *params) {
    (void)params;
    ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    if (cpu && !rapt_ggml_knows_device(cpu))
        return NULL;
    return rapt_ggml_backend_new(device);
}

static ggml_backend_buffer_type_t buffer_type(ggml_backend_dev_t device) {
    (void)device;
    return ggml_backend_cpu_buffer_type();
}

static ggml_backend_buffer_t wrap_memory(ggml_backend_dev_t device, void *memory, size_t size, size_t most) {
    (void)device, (void)most;
    return ggml_backend_cpu_buffer_from_ptr(memory, size);
}

static bool takes(ggml_backend_dev_t device, const struct ggml_tensor *node) {
    struct rapt_ggml_call call;
    (void)device;
    if (rapt_ggml_is_nothing(node->op))
        return true;
    if (node->op != GGML_OP_FLASH_ATTN_EXT)
        return false;
    rapt_message message = {""};
    if (rapt_ggml_describe(&call, node, &message) && rapt_ggml_takes(&call, &message))
        return true;
    rapt_ggml_counters.declined++;
    if (rapt_ggml_is_talkative())
        rapt_ggml_log(GGML_LOG_LEVEL_INFO, "%s is left to others: %s", node->name, message.text);
    return false;
}

static bool takes_buffer(ggml_backend_dev_t device, ggml_backend_buffer_type_t type) {
    (void)device;
    return ggml_backend_buft_is_host(type);
}

static const char *registry_name(ggml_backend_reg_t registry) {
    (void)registry;
    return "rapt";
}

static size_t count_devices(ggml_backend_reg_t registry) {
    (void)registry;
    return 1;
}

static ggml_backend_dev_t device_at(ggml_backend_reg_t registry, size_t index) {
    static struct ggml_backend_device device = {
        .iface = {.get_name = name_of,
                  .get_description = describe,
                  .get_memory = report_memory,
                  .get_type = type_of,
                  .get_props = report,
                  .init_backend = make_backend,
                  .get_buffer_type = buffer_type,
                  .buffer_from_host_ptr = wrap_memory,
                  .supports_op = takes,
                  .supports_buft = takes_buffer}};
    device.reg = registry;
    return index == 0 ? &device : NULL;
}

static const struct rapt_ggml_counters *counters(void) { return &rapt_ggml_counters; }

static void *find(ggml_backend_reg_t registry, const char *name) {
    static const struct {
        const char *name;
        void (*function)(void);
    } functions[] = {{"ggml_backend_set_n_threads", (void (*)(void))rapt_ggml_set_n_threads},
                     {"ggml_backend_cpu_set_threadpool", (void (*)(void))rapt_ggml_set_threadpool},
                     {"ggml_backend_set_abort_callback", (void (*)(void))rapt_ggml_set_abort_callback},
                     {"rapt_ggml_counters", (void (*)(void))counters}};
    (void)registry;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (strcmp(functions[i].name, name) == 0)
            return (void *)functions[i].function;
    return NULL;
}

/* Checked once per load: hosts ask for the score first. */
static bool is_usable(void) {
    static int usable = -1;
    rapt_isa isa;
    if (usable < 0 && rapt_ggml_is_off()) {
        rapt_ggml_log(GGML_LOG_LEVEL_INFO, "off, as the environment's RAPT_GGML says");
        usable = 0;
    }
    if (usable < 0)
        usable = rapt_isa_chosen(&isa) == RAPT_OK && rapt_ggml_knows_release();
    return usable;
}

GGML_BACKEND_API int ggml_backend_score(void);
GGML_BACKEND_API ggml_backend_reg_t ggml_backend_init(void);

int ggml_backend_score(void) { return is_usable() ? 1 : 0; }

ggml_backend_reg_t ggml_backend_init(void) {
    static struct ggml_backend_reg registry = {
        .api_version = GGML_BACKEND_API_VERSION,
        .iface = {.get_name = registry_name, .get_device_count = count_devices, .get_device = device_at,
                  .get_proc_address = find}};
    return is_usable() ? &registry : NULL;
}
