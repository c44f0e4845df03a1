/*
 * mpolset: set the NUMA memory policy of this process, then become a command.
 *
 *   mpolset --mode MODE [--nodes LIST] [--flags FLAG,...] -- COMMAND [ARGUMENT...]
 *
 * A policy survives execve(2) and is inherited by children, so it holds for all
 * processes of a container whose first one is started this way. The program is linked
 * statically: it is mounted into containers that need not have a C library.
 *
 * Exit status, as of env(1): 125 for a mistake or a refused policy, 126 where the
 * command cannot be executed, 127 where it does not exist; else that of the command.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FAILED = 125, NOT_EXECUTABLE = 126, NOT_FOUND = 127 };

/* The largest number of nodes that Linux can be built for, as CONFIG_NODES_SHIFT=10. */
#define NODES 1024
#define BITS (8 * sizeof(unsigned long))

struct name {
  const char *text;
  int value;
};

/* By number where headers may be older than the running kernel. */
static const struct name MODES[] = {
    {"MPOL_DEFAULT", 0},        {"MPOL_PREFERRED", 1}, {"MPOL_BIND", 2},
    {"MPOL_INTERLEAVE", 3},     {"MPOL_LOCAL", 4},     {"MPOL_PREFERRED_MANY", 5},
    {"MPOL_WEIGHTED_INTERLEAVE", 6}, {NULL, 0},
};
static const struct name FLAGS[] = {
    {"MPOL_F_STATIC_NODES", 1 << 15},
    {"MPOL_F_RELATIVE_NODES", 1 << 14},
    {"MPOL_F_NUMA_BALANCING", 1 << 13},
    {NULL, 0},
};

__attribute__((noreturn, format(printf, 2, 3))) static void
fail(int status, const char *format, ...) {
  va_list values;
  fputs("mpolset: ", stderr);
  va_start(values, format);
  vfprintf(stderr, format, values);
  va_end(values);
  fputc('\n', stderr);
  exit(status);
}

static int value_of(const struct name *names, const char *text, size_t length,
                    const char *what) {
  for (; names->text; names++)
    if (strlen(names->text) == length && !strncmp(names->text, text, length))
      return names->value;
  fail(FAILED, "unknown %s '%.*s'", what, (int)length, text);
}

static int read_flags(const char *text) {
  int found = 0;
  for (;;) {
    size_t length = strcspn(text, ",");
    found |= value_of(FLAGS, text, length, "flag");
    if (!text[length])
      return found;
    text += length + 1;
  }
}

static const char *read_node(const char *list, const char *text, unsigned long *node) {
  char *end;
  if (*text < '0' || *text > '9') /* strtoul accepts signs and blanks */
    fail(FAILED, "--nodes '%s': expected a list such as 0-1,4", list);
  errno = 0;
  *node = strtoul(text, &end, 10);
  if (errno || *node >= NODES)
    fail(FAILED, "--nodes '%s': expected nodes below %d", list, NODES);
  return end;
}

static void read_nodes(const char *list, unsigned long *mask) {
  const char *text = list;
  for (;;) {
    unsigned long first, last;
    text = read_node(list, text, &first);
    last = first;
    if (*text == '-')
      text = read_node(list, text + 1, &last);
    if (last < first || (*text && *text != ','))
      fail(FAILED, "--nodes '%s': expected a list such as 0-1,4", list);
    for (; first <= last; first++)
      mask[first / BITS] |= 1UL << (first % BITS);
    if (!*text)
      return;
    text++;
  }
}

int main(int count, char **words) {
  const char *mode = NULL, *nodes = NULL, *flags = NULL;
  unsigned long mask[NODES / BITS] = {0};
  int place, policy;

  for (place = 1; place < count && strcmp(words[place], "--"); place += 2) {
    const char **value = !strcmp(words[place], "--mode")    ? &mode
                         : !strcmp(words[place], "--nodes") ? &nodes
                         : !strcmp(words[place], "--flags") ? &flags
                                                            : NULL;
    if (!value)
      fail(FAILED, "unknown option '%s'", words[place]);
    if (place + 1 == count)
      fail(FAILED, "%s needs a value", words[place]);
    *value = words[place + 1];
  }
  if (!mode)
    fail(FAILED, "usage: mpolset --mode MODE [--nodes LIST] [--flags FLAG,...] -- "
                 "COMMAND [ARGUMENT...]");
  if (place + 1 >= count)
    fail(FAILED, "no command after --");
  words += place + 1;

  policy = value_of(MODES, mode, strlen(mode), "mode");
  if (flags && *flags)
    policy |= read_flags(flags);
  if (nodes && *nodes)
    read_nodes(nodes, mask);

  /* The kernel takes one less than the number of bits that it is given. */
  if (syscall(SYS_set_mempolicy, policy, nodes && *nodes ? mask : NULL,
              nodes && *nodes ? NODES + 1UL : 0UL)) {
    const char *why = errno == EPERM
                          ? " (a seccomp profile may not allow set_mempolicy)"
                          : "";
    fail(FAILED, "cannot set %s on nodes '%s': %s%s", mode, nodes ? nodes : "",
         strerror(errno), why);
  }
  execvp(words[0], words);
  fail(errno == ENOENT || errno == ENOTDIR ? NOT_FOUND : NOT_EXECUTABLE,
       "cannot execute '%s': %s", words[0], strerror(errno));
}
