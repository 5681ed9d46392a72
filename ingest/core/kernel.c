/* The loops that NumPy needs many passes for, in C without dependencies: `ingest/core/kernel.py` says where they are used.
 *
 * Each function has a counterpart in NumPy that is the judge: equal numbers, and "no" for exactly the same bytes. Nothing here
 * explains a refusal: what is refused goes to Python, which finds the line and the reason.
 *
 * Buffers come from the caller and are checked for size before anything is read or written. No memory is allocated. Other
 * threads run meanwhile. */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define LEADING 3           /* columns of `lead` */
#define CELL 3              /* bytes of a cell that is zero: ", 0" */
#define UNIT 24             /* bytes that are compared at once: eight such cells, three words */
#define MOST_TENTH (UINT64_MAX / 10)
#define NOT_PLAIN (-1)
#define NO_ROOM (-2)

typedef struct {
  const uint8_t *text;
  Py_ssize_t size, columns, leading, most_rows, most_entries;
  uint64_t *lead, *counts;
  int64_t *indptr, *bins;
} Rows;

/* Return the first byte, as it lies in memory, in which two words differ that do differ. */
static Py_ssize_t first_unlike(uint64_t unlike) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  return __builtin_clzll(unlike) / 8;
#else
  return __builtin_ctzll(unlike) / 8;
#endif
}

/* Return how many zero cells stand at `p`, a comma, each with the comma of the cell behind it: else it may be a longer number,
 * or the last of its row. Cells close to the end of the text are left to the caller. */
static Py_ssize_t zero_cells(const uint8_t *p, const uint8_t *end) {
  static const char zeros[] = ", 0, 0, 0, 0, 0, 0, 0, 0";
  const uint8_t *first = p;
  uint64_t wanted[UNIT / 8], there[UNIT / 8];
  memcpy(wanted, zeros, UNIT);
  for (; end - p > UNIT; p += UNIT) {
    memcpy(there, p, UNIT);
    for (int word = 0; word < UNIT / 8; word++) {
      uint64_t unlike = there[word] ^ wanted[word];
      if (unlike) return (p - first + 8 * word + first_unlike(unlike) - 1) / CELL;
    }
    if (p[UNIT] != ',') return (p - first + UNIT - 1) / CELL;
  }
  return (p - first) / CELL;
}

/* Rows of plain integers, as fio writes them: cells of digits without leading zeros, ", " between them, one newline. Returns how
 * many rows there are. The text ends with a newline, so no digit is looked for behind it. */
static Py_ssize_t rows_of(const Rows *r) {
  const uint8_t *p = r->text, *end = r->text + r->size;
  Py_ssize_t row = 0, entries = 0;
  if (r->size == 0 || end[-1] != '\n') return NOT_PLAIN;
  r->indptr[0] = 0;
  while (p < end) {
    if (row == r->most_rows || r->most_entries - entries < r->columns - r->leading) return NO_ROOM;
    uint64_t *lead = r->lead + LEADING * row;
    for (int k = 0; k < LEADING; k++) lead[k] = 0;
    for (Py_ssize_t column = 0;;) {
      unsigned digit = (unsigned)*p - '0';
      if (digit > 9 || column == r->columns) return NOT_PLAIN;
      uint64_t value = digit;
      while ((digit = (unsigned)*++p - '0') <= 9) {
        if (value == 0 || value > MOST_TENTH || (value == MOST_TENTH && digit > UINT64_MAX % 10)) return NOT_PLAIN;
        value = 10 * value + digit;
      }
      if (column < r->leading) {
        lead[column] = value;
      } else if (value) {
        r->bins[entries] = column - r->leading;
        r->counts[entries++] = value;
      }
      column++;
      if (*p == '\n') {
        if (column != r->columns) return NOT_PLAIN;
        break;
      }
      if (*p != ',') return NOT_PLAIN;
      if (column >= r->leading) {
        Py_ssize_t zeros = zero_cells(p, end);
        if (zeros > r->columns - column) return NOT_PLAIN;
        column += zeros;
        p += CELL * zeros;
      }
      if (*++p != ' ') return NOT_PLAIN; /* the newline at the end is at the latest what is no blank */
      p++;
    }
    p++;
    r->indptr[++row] = entries;
  }
  return row;
}

static int aligned(const Py_buffer *buffer) { return (uintptr_t)buffer->buf % sizeof(uint64_t) == 0; }

static PyObject *fio_rows(PyObject *self, PyObject *args) {
  Py_buffer text, lead, indptr, bins, counts;
  Py_ssize_t columns, leading, found;
  (void)self;
  if (!PyArg_ParseTuple(args, "y*nnw*w*w*w*", &text, &columns, &leading, &lead, &indptr, &bins, &counts)) return NULL;
  const Py_ssize_t word = sizeof(uint64_t);
  Rows rows = {text.buf, text.len, columns, leading, lead.len / (LEADING * word), 0, lead.buf, counts.buf, indptr.buf, bins.buf};
  rows.most_entries = (bins.len < counts.len ? bins.len : counts.len) / word;
  if (indptr.len / word - 1 < rows.most_rows) rows.most_rows = indptr.len / word - 1;
  if (leading < 0 || leading > LEADING || columns <= leading || rows.most_rows < 0 ||
      !aligned(&lead) || !aligned(&indptr) || !aligned(&bins) || !aligned(&counts)) {
    found = NO_ROOM;
  } else {
    Py_BEGIN_ALLOW_THREADS
    found = rows_of(&rows);
    Py_END_ALLOW_THREADS
  }
  PyBuffer_Release(&text);
  PyBuffer_Release(&lead);
  PyBuffer_Release(&indptr);
  PyBuffer_Release(&bins);
  PyBuffer_Release(&counts);
  if (found == NO_ROOM) {
    PyErr_SetString(PyExc_ValueError, "no room for the rows of so much text, or such columns cannot be");
    return NULL;
  }
  return PyLong_FromSsize_t(found);
}

static PyMethodDef functions[] = {
    {"fio_rows", fio_rows, METH_VARARGS,
     "fio_rows(text, columns, leading, lead, indptr, bins, counts) -> rows, or -1 where the text is not plain\n\n"
     "lead (uint64, 3 a row), indptr (int64, one more than rows), bins (int64) and counts (uint64) are filled in.\n"
     "ValueError where they are too small."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_kernel", NULL, 0, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__kernel(void) { return PyModuleDef_Init(&module); }
