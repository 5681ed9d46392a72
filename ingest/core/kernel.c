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
#if defined(__SSE2__) && !defined(PORTABLE)
#include <emmintrin.h>
#endif

#define LEADING 3           /* columns of `lead` */
#define CELL 3              /* bytes of a cell that is zero: ", 0" */
#define BLOCK 48            /* bytes that are looked at together: sixteen such cells */
#define LAST (UINT64_C(1) << (BLOCK - 1))
#define EACH (UINT64_MAX / 255) /* a byte of 1 in each byte of a word */
#define PAIRS (UINT64_C(0x000000FF000000FF))
#define PLAIN_DIGITS 18     /* always fit 64 bits */
#define WORD ((Py_ssize_t)sizeof(uint64_t))
#define MOST_TENTH (UINT64_MAX / 10)
#define CONTINUED 128       /* bytes of a word but its last one are this or more */
#define LONGEST_WORD 8
#define FAR (UINT64_C(1) << 40)
#define NOT_PLAIN (-1)
#define NO_ROOM (-2)

__extension__ typedef unsigned __int128 Wide;

typedef struct {
  const uint8_t *text;
  Py_ssize_t size, columns, leading, most_rows, most_entries;
  uint64_t *lead, *counts;
  int64_t *indptr, *bins;
} Rows;

static Py_ssize_t least(Py_ssize_t a, Py_ssize_t b) { return a < b ? a : b; }

/* Return the word that lies there, its first byte the lowest. */
static inline uint64_t word_at(const uint8_t *p) {
  uint64_t word;
  memcpy(&word, p, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  word = __builtin_bswap64(word);
#endif
  return word;
}

/* Which bytes of a block are commas, blanks, digits and zeros: bit i of byte i. */
typedef struct {
  uint64_t comma, blank, digit, zero;
} Marks;

#if defined(__SSE2__) && !defined(PORTABLE)
static inline Marks marks_of(const uint8_t *p) {
  Marks m = {0, 0, 0, 0};
  for (int at = 0; at < BLOCK; at += 16) {
    const __m128i text = _mm_loadu_si128((const __m128i *)(p + at)), value = _mm_sub_epi8(text, _mm_set1_epi8('0'));
    m.comma |= (uint64_t)_mm_movemask_epi8(_mm_cmpeq_epi8(text, _mm_set1_epi8(','))) << at;
    m.blank |= (uint64_t)_mm_movemask_epi8(_mm_cmpeq_epi8(text, _mm_set1_epi8(' '))) << at;
    m.digit |= (uint64_t)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(value, _mm_set1_epi8(9)), value)) << at;
    m.zero |= (uint64_t)_mm_movemask_epi8(_mm_cmpeq_epi8(value, _mm_setzero_si128())) << at;
  }
  return m;
}
#else
/* Return in eight bits which bytes of a word are at most `most` where they differ from `byte`, none of 128 or more. */
static inline uint64_t near(uint64_t word, uint64_t byte, uint64_t most) {
  const uint64_t unlike = ((word ^ byte * EACH) & 0x7F * EACH) + (0x7F - most) * EACH;
  return (((~unlike & ~word) >> 7 & EACH) * UINT64_C(0x0102040810204080)) >> 56;
}

static inline Marks marks_of(const uint8_t *p) {
  Marks m = {0, 0, 0, 0};
  for (int at = 0; at < BLOCK; at += 8) {
    const uint64_t word = word_at(p + at);
    m.comma |= near(word, ',', 0) << at;
    m.blank |= near(word, ' ', 0) << at;
    m.digit |= near(word, '0', 9) << at;
    m.zero |= near(word, '0', 0) << at;
  }
  return m;
}
#endif

/* Read a number without leading zeros, of at most 64 bits, at `*p`; return whether there is one. A newline is behind it at the
 * latest. */
static inline int number(const uint8_t **p, uint64_t *value) {
  const uint8_t *at = *p;
  uint64_t sum = (uint64_t)*at - '0';
  unsigned digit;
  if (sum > 9) return 0;
  while ((digit = (unsigned)*++at - '0') <= 9) {
    if (sum == 0 || sum > MOST_TENTH || (sum == MOST_TENTH && digit > UINT64_MAX % 10)) return 0;
    sum = 10 * sum + digit;
  }
  *value = sum;
  *p = at;
  return 1;
}

/* Return whether the next half of a block is as wanted. */
static inline int alike(const uint8_t *p, const uint8_t *wanted) {
  return !((word_at(p) ^ word_at(wanted)) | (word_at(p + 8) ^ word_at(wanted + 8)) | (word_at(p + 16) ^ word_at(wanted + 16)));
}

/* Read the number of so many digits, at most eight. */
static inline uint64_t short_number(const uint8_t *p, int digits) {
  uint64_t word = (word_at(p) ^ '0' * EACH) << (64 - 8 * digits);
  word = 10 * word + (word >> 8);
  return ((word & PAIRS) * (100 + (UINT64_C(1000000) << 32)) + (word >> 16 & PAIRS) * (1 + (UINT64_C(10000) << 32))) >> 32;
}

/* Read the bins of a row from its first one on, and go behind its newline; return how many counts there are, all above 0.
 *
 * Of a block is seen at once that each blank stands behind a comma, a digit behind each blank, and none behind a zero that
 * begins a cell. So a cell is as long as its digits and two bytes more, which says in which bin each count stands. */
static inline Py_ssize_t bins_of(const uint8_t **row, const uint8_t *end, Py_ssize_t bins, int64_t *bin, uint64_t *counts) {
  static const char zeros[] = "0, 0, 0, 0, 0, 0, 0, 0, 0, ";
  const uint8_t *p = *row, *first = p; /* where cells would begin if each were of three bytes */
  uint64_t commas = 0, blanks = 1, zero = 0; /* whether the byte before the block is one, a zero that begins a cell */
  uint8_t last[BLOCK + WORD];
  Py_ssize_t found = 0;
  for (;; p += BLOCK) {
    const uint8_t *block = p, *wanted = (const uint8_t *)zeros + (blanks ? 0 : commas ? 2 : 1);
    if (end - p < BLOCK + WORD) {
      memset(last, 0, sizeof last);
      block = memcpy(last, p, (size_t)least(end - p, BLOCK));
    }
    if (alike(block, wanted) && alike(block + BLOCK / 2, wanted)) {
      zero = *wanted == ',';
      continue;
    }
    const Marks m = marks_of(block);
    const uint64_t other = ~(m.comma | m.blank | m.digit) & ((LAST << 1) - 1);
    const int size = other ? __builtin_ctzll(other) : BLOCK;
    const uint64_t inside = (UINT64_C(1) << size) - 1;
    const uint64_t begins = m.blank << 1 | blanks, behind = m.comma << 1 | commas;
    if ((m.blank ^ behind) & inside || begins & ~m.digit & inside || ((begins & m.zero) << 1 | zero) & m.digit & inside) return NOT_PLAIN;
    for (uint64_t left = begins & ~m.zero & inside; left; left &= left - 1) {
      const int at = __builtin_ctzll(left), digits = __builtin_ctzll(~(m.digit >> at));
      const size_t place = (size_t)(p + at - first) / CELL;
      if (place >= (size_t)bins) return NOT_PLAIN;
      if (digits <= WORD && at + digits < BLOCK) {
        counts[found] = short_number(block + at, digits);
        first += digits - 1;
      } else {
        const uint8_t *from = p + at, *behind_it = from;
        if (!number(&behind_it, &counts[found])) return NOT_PLAIN;
        first += behind_it - from - 1;
      }
      bin[found++] = (int64_t)place;
    }
    if (other) {
      p += size;
      *row = p + 1;
      return *p == '\n' && !((begins | behind) >> size & 1) && p - first == CELL * bins - 2 ? found : NOT_PLAIN;
    }
    commas = m.comma / LAST & 1;
    blanks = m.blank / LAST & 1;
    zero = (begins & m.zero) / LAST & 1;
  }
}

/* Rows as fio writes them: cells without leading zeros, ", " between them, one newline. Returns how many there are. */
static Py_ssize_t rows_of(const Rows *r) {
  const uint8_t *p = r->text, *end = r->text + r->size;
  const Py_ssize_t bins = r->columns - r->leading;
  Py_ssize_t row = 0, entries = 0;
  if (r->size == 0 || end[-1] != '\n') return NOT_PLAIN;
  r->indptr[0] = 0;
  while (p < end) {
    if (row == r->most_rows || r->most_entries - entries < bins) return NO_ROOM;
    uint64_t *lead = r->lead + LEADING * row;
    for (int k = 0; k < LEADING; k++) lead[k] = 0;
    for (int k = 0; k < r->leading; k++) {
      if (!number(&p, &lead[k]) || *p++ != ',' || *p++ != ' ') return NOT_PLAIN;
    }
    const Py_ssize_t found = bins_of(&p, end, bins, r->bins + entries, r->counts + entries);
    if (found < 0) return NOT_PLAIN;
    r->indptr[++row] = entries += found;
  }
  return row;
}

/* Rows of `width` integers of up to 18 digits, ", " between them and one newline, to columns with room for `most` each. Returns
 * how many rows there are. */
static Py_ssize_t integers_of(const uint8_t *p, Py_ssize_t size, Py_ssize_t width, int64_t *columns, Py_ssize_t most) {
  const uint8_t *end = p + size;
  Py_ssize_t row = 0;
  if (size == 0 || end[-1] != '\n') return NOT_PLAIN;
  for (; p < end; row++) {
    if (row == most) return NO_ROOM;
    for (Py_ssize_t column = 0; column < width; column++) {
      const uint8_t *first = p;
      int64_t value = 0;
      for (unsigned digit; (digit = (unsigned)*p - '0') <= 9; p++) {
        if (p - first == PLAIN_DIGITS) return NOT_PLAIN;
        value = 10 * value + digit;
      }
      if (p == first) return NOT_PLAIN;
      columns[column * most + row] = value;
      if (column < width - 1 && (*p++ != ',' || *p++ != ' ')) return NOT_PLAIN;
    }
    if (*p++ != '\n') return NOT_PLAIN;
  }
  return row;
}

/* ZigZag LEB128 words of HdrHistogram payloads, those of row i at text[starts[i]] up to starts[i + 1], to CSR rows: each count with
 * its bin, the sum of all that words before it in its row advance. Returns how many counts there are. */
static Py_ssize_t counts_of(const uint8_t *text, Py_ssize_t size, const int64_t *starts, Py_ssize_t rows, int64_t *indptr,
                            int64_t *bins, int64_t *counts) {
  Py_ssize_t entries = 0;
  indptr[0] = 0;
  for (Py_ssize_t row = 0; row < rows; row++) {
    const int64_t end = starts[row + 1];
    uint64_t bin = 0;
    if (starts[row] < entries || end < starts[row] || end > size) return NO_ROOM; /* a word is a byte or more */
    for (int64_t at = starts[row]; at < end;) {
      uint64_t word = text[at++];
      if (word < CONTINUED) { /* a count is written, whatever the word says: that is quicker than to ask */
        const uint64_t gap = word & 1;
        bins[entries] = (int64_t)bin;
        counts[entries] = (int64_t)(word / 2);
        entries += word && !gap;
        bin += 1 + (word / 2 & -gap);
      } else {
        word -= CONTINUED;
        for (unsigned shift = 7, byte = CONTINUED; byte >= CONTINUED; shift += 7) {
          if (at == end || shift == 7 * LONGEST_WORD) return NOT_PLAIN;
          byte = text[at++];
          word |= (uint64_t)(byte % CONTINUED) << shift;
        }
        if (word & 1) {
          bin += word / 2 < FAR ? word / 2 + 1 : FAR;
        } else {
          bins[entries] = (int64_t)bin++;
          counts[entries] = (int64_t)(word / 2);
          entries += word != 0;
        }
      }
    }
    indptr[row + 1] = entries;
  }
  return entries;
}

/* Find the entry of a CSR row that holds the sample of a rank, from 1 on. Returns -1 where a row is none or holds fewer. */
static int ranked(const int64_t *indptr, Py_ssize_t rows, const int64_t *counts, Py_ssize_t entries, const int64_t *picked,
                  const int64_t *ranks, Py_ssize_t asked, int64_t *places) {
  for (Py_ssize_t each = 0; each < asked; each++) {
    const int64_t row = picked[each];
    if (row < 0 || row >= rows || indptr[row] < 0 || indptr[row + 1] > entries) return -1;
    int64_t at = indptr[row], left = ranks[each];
    while (at < indptr[row + 1] && (left -= counts[at]) > 0) at++;
    if (at >= indptr[row + 1]) return -1;
    places[each] = at;
  }
  return 0;
}

/* Take objects as columns of words of 64 bits, the last `written` of them to be filled in; -1 and a TypeError where one is no
 * such column. */
static int columns_of(PyObject **objects, int number, int written, Py_buffer *columns) {
  for (int k = 0; k < number; k++) {
    const int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (k < number - written ? 0 : PyBUF_WRITABLE);
    int found = PyObject_GetBuffer(objects[k], &columns[k], flags);
    if (found == 0 && (columns[k].itemsize != WORD || (uintptr_t)columns[k].buf % WORD)) {
      PyErr_SetString(PyExc_TypeError, "not a column of words of 64 bits");
      PyBuffer_Release(&columns[k]);
      found = -1;
    }
    if (found != 0) {
      while (k-- > 0) PyBuffer_Release(&columns[k]);
      return -1;
    }
  }
  return 0;
}

static Py_ssize_t length(const Py_buffer *column) { return column->len / WORD; }

static void release(Py_buffer *columns, int number) {
  for (int k = 0; k < number; k++) PyBuffer_Release(&columns[k]);
}

static PyObject *fio_rows(PyObject *self, PyObject *args) {
  enum { LEAD, INDPTR, BINS, COUNTS, NUMBER };
  PyObject *o[NUMBER];
  Py_buffer text, c[NUMBER];
  Py_ssize_t columns, leading, found = NO_ROOM;
  (void)self;
  if (!PyArg_ParseTuple(args, "y*nnOOOO", &text, &columns, &leading, &o[LEAD], &o[INDPTR], &o[BINS], &o[COUNTS])) return NULL;
  if (columns_of(o, NUMBER, NUMBER, c) != 0) {
    PyBuffer_Release(&text);
    return NULL;
  }
  Rows rows = {text.buf, text.len, columns, leading, 0, 0, c[LEAD].buf, c[COUNTS].buf, c[INDPTR].buf, c[BINS].buf};
  rows.most_rows = least(length(&c[LEAD]) / LEADING, length(&c[INDPTR]) - 1);
  rows.most_entries = least(length(&c[BINS]), length(&c[COUNTS]));
  if (leading >= 0 && leading <= LEADING && columns > leading && rows.most_rows >= 0) {
    Py_BEGIN_ALLOW_THREADS
    found = rows_of(&rows);
    Py_END_ALLOW_THREADS
  }
  PyBuffer_Release(&text);
  release(c, NUMBER);
  if (found != NO_ROOM) return PyLong_FromSsize_t(found);
  PyErr_SetString(PyExc_ValueError, "no room for the rows of so much text, or such columns cannot be");
  return NULL;
}

/* Add the counts of CSR rows to `dense`, rows of `width` cells of which the first is bin `low`: row i to row group[i] there. Row
 * pointers may begin anywhere. Returns -1 where a row or bin is outside, or row pointers do not fit; what came before is added.
 */
static int added(const int64_t *group, Py_ssize_t rows, const int64_t *indptr, const int64_t *bins, const int64_t *counts,
                 Py_ssize_t entries, int64_t low, int64_t width, int64_t *dense, Py_ssize_t cells) {
  if (width < 1) return -1;
  const int64_t groups = cells / width;
  for (Py_ssize_t row = 0; row < rows; row++) {
    const uint64_t first = (uint64_t)indptr[row] - (uint64_t)indptr[0], end = (uint64_t)indptr[row + 1] - (uint64_t)indptr[0];
    if (group[row] < 0 || group[row] >= groups || end < first || end > (uint64_t)entries) return -1;
    uint64_t *to = (uint64_t *)dense + group[row] * width;
    for (uint64_t at = first; at < end; at++) {
      const uint64_t bin = (uint64_t)bins[at] - (uint64_t)low;
      if (bin >= (uint64_t)width) return -1;
      to[bin] += (uint64_t)counts[at];
    }
  }
  return 0;
}

static PyObject *integer_rows(PyObject *self, PyObject *args) {
  PyObject *objects[1];
  Py_buffer text, columns;
  Py_ssize_t width, found = NO_ROOM;
  (void)self;
  if (!PyArg_ParseTuple(args, "y*nO", &text, &width, &objects[0])) return NULL;
  if (columns_of(objects, 1, 1, &columns) != 0) {
    PyBuffer_Release(&text);
    return NULL;
  }
  if (width > 0 && length(&columns) % width == 0) {
    Py_BEGIN_ALLOW_THREADS
    found = integers_of(text.buf, text.len, width, columns.buf, length(&columns) / width);
    Py_END_ALLOW_THREADS
  }
  PyBuffer_Release(&text);
  release(&columns, 1);
  if (found != NO_ROOM) return PyLong_FromSsize_t(found);
  PyErr_SetString(PyExc_ValueError, "no room for the rows of so much text, or the columns are not of one length");
  return NULL;
}

static PyObject *hdr_rows(PyObject *self, PyObject *args) {
  enum { STARTS, INDPTR, BINS, COUNTS, NUMBER };
  PyObject *o[NUMBER];
  Py_buffer text, c[NUMBER];
  Py_ssize_t found = NO_ROOM;
  (void)self;
  if (!PyArg_ParseTuple(args, "y*OOOO", &text, &o[STARTS], &o[INDPTR], &o[BINS], &o[COUNTS])) return NULL;
  if (columns_of(o, NUMBER, NUMBER - 1, c) != 0) {
    PyBuffer_Release(&text);
    return NULL;
  }
  if (length(&c[STARTS]) > 0 && length(&c[INDPTR]) == length(&c[STARTS]) && least(length(&c[BINS]), length(&c[COUNTS])) >= text.len) {
    Py_BEGIN_ALLOW_THREADS
    found = counts_of(text.buf, text.len, c[STARTS].buf, length(&c[STARTS]) - 1, c[INDPTR].buf, c[BINS].buf, c[COUNTS].buf);
    Py_END_ALLOW_THREADS
  }
  PyBuffer_Release(&text);
  release(c, NUMBER);
  if (found != NO_ROOM) return PyLong_FromSsize_t(found);
  PyErr_SetString(PyExc_ValueError, "no room for the counts of so many words, or rows lie outside of them");
  return NULL;
}

static PyObject *add_rows(PyObject *self, PyObject *args) {
  enum { GROUP, INDPTR, BINS, COUNTS, DENSE, NUMBER };
  PyObject *o[NUMBER];
  Py_buffer c[NUMBER];
  long long width, low;
  int failed = -1;
  (void)self;
  if (!PyArg_ParseTuple(args, "OOOOLLO", &o[GROUP], &o[INDPTR], &o[BINS], &o[COUNTS], &low, &width, &o[DENSE])) return NULL;
  if (columns_of(o, NUMBER, 1, c) != 0) return NULL;
  if (length(&c[INDPTR]) == length(&c[GROUP]) + 1 && length(&c[BINS]) == length(&c[COUNTS])) {
    Py_BEGIN_ALLOW_THREADS
    failed = added(c[GROUP].buf, length(&c[GROUP]), c[INDPTR].buf, c[BINS].buf, c[COUNTS].buf, length(&c[BINS]), low, width,
                   c[DENSE].buf, length(&c[DENSE]));
    Py_END_ALLOW_THREADS
  }
  release(c, NUMBER);
  if (failed == 0) Py_RETURN_NONE;
  PyErr_SetString(PyExc_ValueError, "rows or bins are outside of what they are added to");
  return NULL;
}

static PyObject *rank_rows(PyObject *self, PyObject *args) {
  enum { INDPTR, COUNTS, PICKED, RANKS, PLACES, NUMBER };
  PyObject *o[NUMBER];
  Py_buffer c[NUMBER];
  int failed = -1;
  (void)self;
  if (!PyArg_ParseTuple(args, "OOOOO", &o[INDPTR], &o[COUNTS], &o[PICKED], &o[RANKS], &o[PLACES])) return NULL;
  if (columns_of(o, NUMBER, 1, c) != 0) return NULL;
  if (length(&c[RANKS]) == length(&c[PICKED]) && length(&c[PLACES]) == length(&c[PICKED])) {
    Py_BEGIN_ALLOW_THREADS
    failed = ranked(c[INDPTR].buf, length(&c[INDPTR]) - 1, c[COUNTS].buf, length(&c[COUNTS]), c[PICKED].buf, c[RANKS].buf,
                    length(&c[PICKED]), c[PLACES].buf);
    Py_END_ALLOW_THREADS
  }
  release(c, NUMBER);
  if (failed == 0) Py_RETURN_NONE;
  PyErr_SetString(PyExc_ValueError, "no such rows, or no such ranks in them");
  return NULL;
}

/* The share top/bottom of a number, rounded, halves to even; top <= bottom. */
static uint64_t rounded(uint64_t value, uint64_t top, uint64_t bottom) {
  uint64_t product, whole, rest;
  if (__builtin_mul_overflow(value, top, &product)) {
    const Wide wide = (Wide)value * top;
    whole = (uint64_t)(wide / bottom); /* at most `value` */
    rest = (uint64_t)(wide % bottom);
  } else {
    whole = product / bottom;
    rest = product % bottom;
  }
  return whole + (rest > bottom - rest || (rest == bottom - rest && (whole & 1)));
}

/* Cut CSR rows by time: of the counts of each row, in the order of its bins, the first part/whole; their sums are rounded.
 * Returns -1 where a part is none of its whole, or row pointers do not fit. */
static int shared(const int64_t *counts, Py_ssize_t entries, const int64_t *indptr, const int64_t *part, const int64_t *whole,
                  Py_ssize_t rows, int64_t *before) {
  for (Py_ssize_t row = 0; row < rows; row++) {
    const int64_t end = indptr[row + 1];
    if (indptr[row] < 0 || end < indptr[row] || end > entries || part[row] < 0 || whole[row] < 1 || part[row] > whole[row])
      return -1;
    uint64_t top = (uint64_t)part[row], bottom = (uint64_t)whole[row], divisor = bottom, rest = top;
    while (rest) {
      const uint64_t next = divisor % rest;
      divisor = rest;
      rest = next;
    }
    top /= divisor;
    bottom /= divisor;
    uint64_t sum = 0, taken = 0;
    for (int64_t at = indptr[row]; at < end; at++) {
      sum += (uint64_t)counts[at];
      const uint64_t until = rounded(sum, top, bottom);
      before[at] = (int64_t)(until - taken);
      taken = until;
    }
  }
  return 0;
}

static PyObject *share(PyObject *self, PyObject *args) {
  enum { COUNTS, INDPTR, PART, WHOLE, BEFORE, NUMBER };
  PyObject *o[NUMBER];
  Py_buffer c[NUMBER];
  int failed = -1;
  (void)self;
  if (!PyArg_ParseTuple(args, "OOOOO", &o[COUNTS], &o[INDPTR], &o[PART], &o[WHOLE], &o[BEFORE])) return NULL;
  if (columns_of(o, NUMBER, 1, c) != 0) return NULL;
  if (length(&c[PART]) == length(&c[WHOLE]) && length(&c[INDPTR]) == length(&c[PART]) + 1 &&
      length(&c[BEFORE]) == length(&c[COUNTS])) {
    Py_BEGIN_ALLOW_THREADS
    failed = shared(c[COUNTS].buf, length(&c[COUNTS]), c[INDPTR].buf, c[PART].buf, c[WHOLE].buf, length(&c[PART]), c[BEFORE].buf);
    Py_END_ALLOW_THREADS
  }
  release(c, NUMBER);
  if (failed == 0) Py_RETURN_NONE;
  PyErr_SetString(PyExc_ValueError, "rows cannot be cut so");
  return NULL;
}

/* Stretches of operations in a row, to see that some come again. */

#define STRETCH 32
#define MOST_CHANGES (UINT64_MAX >> (64 - STRETCH + 1)) /* one bit for each operation of a stretch but the first */
#define CHANGES 3 /* of the time in a stretch, at least */
#define MIX UINT64_C(0x9E3779B97F4A7C15)
#define MIX_LATENCY UINT64_C(0xC2B2AE3D27D4EB4F)
#define MIX_AGAIN UINT64_C(0xFF51AFD7ED558CCD)
#define UNMIX UINT64_C(0xF1DE83E19937733D) /* the inverse of MIX */
#define MIX_LAST UINT64_C(0x196A94FE0490E6BD) /* MIX to the power of STRETCH - 1 */

enum { SEEN, SUM, POWER, END, START, ENDS, STARTS, RING, STATE = RING + STRETCH };

/* Take the next operations of a file. Of each stretch that ends with one of them a sum of hashes is kept up, op j times MIX to the
 * power of j. Fills in those that `every`, a power of two, divides, in which both ends and starts change often enough, and where
 * the stretch ends. Returns how many there are, -1 where a label is none. */
static Py_ssize_t stretches_of(uint64_t *state, const int64_t *ends, const int64_t *latencies, const int64_t *series, Py_ssize_t rows,
                               const uint64_t *labels, Py_ssize_t known, uint64_t every, uint64_t *sums, int64_t *places) {
  Py_ssize_t found = 0;
  uint64_t *ring = state + RING, seen = state[SEEN], sum = state[SUM], power = state[POWER];
  uint64_t last_end = state[END], last_start = state[START], new_ends = state[ENDS], new_starts = state[STARTS];
  for (Py_ssize_t row = 0; row < rows; row++) {
    if (series[row] < 0 || series[row] >= known) return -1;
    const uint64_t end = (uint64_t)ends[row], start = end - (uint64_t)latencies[row];
    uint64_t mixed = (end * MIX) ^ ((uint64_t)latencies[row] * MIX_LATENCY) ^ labels[series[row]];
    mixed = (mixed ^ (mixed >> 29)) * MIX_AGAIN;
    uint64_t *oldest = &ring[seen % STRETCH];
    if (seen < STRETCH) {
      power = seen ? power * MIX : 1;
      sum += mixed * power;
    } else {
      sum = (sum - *oldest) * UNMIX + mixed * MIX_LAST;
    }
    *oldest = mixed;
    new_ends = (new_ends << 1 | (end != last_end)) & MOST_CHANGES;
    new_starts = (new_starts << 1 | (start != last_start)) & MOST_CHANGES;
    last_end = end;
    last_start = start;
    if (++seen < STRETCH || sum & (every - 1)) continue;
    if (__builtin_popcountll(new_ends) < CHANGES || __builtin_popcountll(new_starts) < CHANGES) continue;
    sums[found] = sum;
    places[found++] = row;
  }
  const uint64_t now[RING] = {seen, sum, power, last_end, last_start, new_ends, new_starts};
  memcpy(state, now, sizeof now);
  return found;
}

static PyObject *stretches(PyObject *self, PyObject *args) {
  enum { ENDED, LATENCY, SERIES, LABELS, KEPT, SUMS, PLACES, NUMBER };
  PyObject *o[NUMBER];
  Py_buffer c[NUMBER];
  unsigned long long every;
  Py_ssize_t found = -1;
  (void)self;
  if (!PyArg_ParseTuple(args, "OOOOKOOO", &o[ENDED], &o[LATENCY], &o[SERIES], &o[LABELS], &every, &o[KEPT], &o[SUMS], &o[PLACES]))
    return NULL;
  if (columns_of(o, NUMBER, 3, c) != 0) return NULL;
  const Py_ssize_t rows = length(&c[ENDED]);
  if (length(&c[LATENCY]) == rows && length(&c[SERIES]) == rows && length(&c[KEPT]) == STATE && every > 0 &&
      least(length(&c[SUMS]), length(&c[PLACES])) >= rows) {
    Py_BEGIN_ALLOW_THREADS
    found = stretches_of(c[KEPT].buf, c[ENDED].buf, c[LATENCY].buf, c[SERIES].buf, rows, c[LABELS].buf, length(&c[LABELS]), every,
                         c[SUMS].buf, c[PLACES].buf);
    Py_END_ALLOW_THREADS
  }
  release(c, NUMBER);
  if (found >= 0) return PyLong_FromSsize_t(found);
  PyErr_SetString(PyExc_ValueError, "operations and labels do not fit");
  return NULL;
}

/* Add operations up by window and series, and by bin of `half` bins an octave: a cell for each window of each of `known` series, the
 * windows from `first` on, the bins from `low` on; `dense` is all zeros before and after. Returns how many bins were filled in,
 * -1 where an operation lies outside or took no time that can be. */
static Py_ssize_t events_of(const int64_t *series, const int64_t *ends, const int64_t *latencies, Py_ssize_t rows, int64_t step,
                            int64_t first, int64_t known, int half, int64_t low, int64_t width, Py_ssize_t cells, int64_t *dense,
                            int64_t *least, int64_t *most, int64_t *spent, int64_t *indptr, int64_t *bins, int64_t *counts) {
  const int bits = __builtin_ctz((unsigned)half);
  int64_t begin = 0, window = -1; /* of the window of the last one: (begin, begin + step] */
  for (Py_ssize_t row = 0; row < rows; row++) {
    const uint64_t latency = (uint64_t)latencies[row];
    if (latency >> 53 || series[row] < 0 || series[row] >= known) return -1;
    if (step && (window < 0 || ends[row] <= begin || ends[row] - step > begin)) {
      window = (ends[row] - 1) / step - ((ends[row] - 1) % step < 0) - first;
      if (window < 0 || window >= cells / known) return -1;
      begin = (window + first) * step;
    }
    const int octave = latency < (uint64_t)half ? 0 : 63 - __builtin_clzll(latency) - bits;
    const int64_t bin = (int64_t)(latency >> octave) + (int64_t)octave * half - low, cell = (step ? window : 0) * known + series[row];
    if (bin < 0 || bin >= width || cell >= cells) return -1;
    dense[cell * width + bin]++;
    if (latencies[row] < least[cell]) least[cell] = latencies[row];
    if (latencies[row] > most[cell]) most[cell] = latencies[row];
    spent[cell] += latencies[row];
  }
  Py_ssize_t filled = 0;
  for (Py_ssize_t cell = 0; cell < cells; cell++, dense += width) {
    indptr[cell] = filled;
    if (least[cell] == INT64_MAX) continue;
    for (int64_t bin = 0; bin < width; bin++) {
      if (!dense[bin]) continue;
      bins[filled] = bin + low;
      counts[filled++] = dense[bin];
      dense[bin] = 0;
    }
  }
  indptr[cells] = filled;
  return filled;
}

static PyObject *event_rows(PyObject *self, PyObject *args) {
  enum { SERIES, ENDED, LATENCY, DENSE, LEAST, MOST, SPENT, INDPTR, BINS, COUNTS, NUMBER };
  PyObject *o[NUMBER];
  Py_buffer c[NUMBER];
  Py_ssize_t filled = -1;
  long long step, first, known, low, width;
  int half;
  (void)self;
  if (!PyArg_ParseTuple(args, "OOOLLLiLLOOOOOOO", &o[SERIES], &o[ENDED], &o[LATENCY], &step, &first, &known, &half, &low, &width,
                        &o[DENSE], &o[LEAST], &o[MOST], &o[SPENT], &o[INDPTR], &o[BINS], &o[COUNTS]))
    return NULL;
  if (columns_of(o, NUMBER, 7, c) != 0) return NULL;
  const Py_ssize_t rows = length(&c[ENDED]), cells = length(&c[LEAST]);
  if (length(&c[SERIES]) == rows && length(&c[LATENCY]) == rows && length(&c[MOST]) == cells && length(&c[SPENT]) == cells &&
      step >= 0 && known > 0 && half > 0 && width > 0 && length(&c[DENSE]) / width >= cells && length(&c[INDPTR]) == cells + 1 &&
      length(&c[BINS]) >= rows && length(&c[COUNTS]) >= rows) {
    Py_BEGIN_ALLOW_THREADS
    filled = events_of(c[SERIES].buf, c[ENDED].buf, c[LATENCY].buf, rows, step, first, known, half, low, width, cells, c[DENSE].buf,
                       c[LEAST].buf, c[MOST].buf, c[SPENT].buf, c[INDPTR].buf, c[BINS].buf, c[COUNTS].buf);
    Py_END_ALLOW_THREADS
  }
  release(c, NUMBER);
  if (filled >= 0) return PyLong_FromSsize_t(filled);
  PyErr_SetString(PyExc_ValueError, "operations are outside of what they are added to");
  return NULL;
}

/* What findings are made of: the cheapest levels of a series, and by how much samples took longer than as many others. */

#define LOGS (1 << 18)    /* logarithms of whole numbers that the caller has, from 0 on; that of 0 is 0 */
#define LOG_2 0.69314718055994530942
#define LEAST 1e-300 /* of what was due */

/* Return the logarithm of a number, not 0 and no denormal one: of its first 18 bits from the table, the rest as a series. */
static double logarithm(double x, const double *logs) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  const int exponent = (int)(bits >> 52) - 1023 - 17;
  const uint64_t first = (1 << 17) | (bits >> 35 & 0x1FFFF);
  bits = (bits & 0xFFFFFFFFFFFFFULL) | (uint64_t)(1023 + 17) << 52;
  memcpy(&x, &bits, sizeof x);
  const double rest = (x - (double)first) / (double)first; /* below 2^-17 */
  return exponent * LOG_2 + (logs[first] + rest * (1 - rest * (0.5 - rest / 3)));
}

/* Partition `blocks` blocks: of `many` counts a level costs weight x log x, of the first less x times the logarithm of what was
 * due, where that is known. Fills in of each block where the cheapest level that ends with it begins. */
static void cut(const int64_t *below, const double *weights, const double *due, const double *logs, Py_ssize_t many,
                Py_ssize_t blocks, double penalty, double *best, int64_t *back) {
  best[0] = -penalty;
  for (Py_ssize_t end = 1; end <= blocks; end++) {
    double lowest = 0;
    Py_ssize_t from = -1;
    for (Py_ssize_t first = 0; first < end; first++) {
      double cost = 0;
      for (Py_ssize_t at = 0; at < many; at++) {
        const int64_t inside = below[at * (blocks + 1) + end] - below[at * (blocks + 1) + first];
        if (inside <= 0) continue;
        const double size = (double)inside;
        double log = inside < LOGS ? logs[inside] : logarithm(size, logs);
        if (due) log -= logarithm(due[end] - due[first] > LEAST ? due[end] - due[first] : LEAST, logs);
        cost += weights[at] * (size * log);
      }
      cost += best[first];
      if (from >= 0 && cost >= lowest) continue;
      lowest = cost;
      from = first;
    }
    back[end] = from;
    best[end] = lowest + penalty;
  }
}

static PyObject *cut_levels(PyObject *self, PyObject *args) {
  enum { BELOW, WEIGHTS, DUE, TABLE, BEST, BACK, NUMBER };
  PyObject *o[NUMBER];
  Py_buffer c[NUMBER];
  double penalty;
  (void)self;
  if (!PyArg_ParseTuple(args, "OOOOdOO", &o[BELOW], &o[WEIGHTS], &o[DUE], &o[TABLE], &penalty, &o[BEST], &o[BACK])) return NULL;
  if (columns_of(o, NUMBER, 2, c) != 0) return NULL;
  const Py_ssize_t places = length(&c[BEST]), sets = places ? length(&c[BACK]) / places : 0;
  const Py_ssize_t many = sets ? length(&c[WEIGHTS]) / sets : 0, dues = length(&c[DUE]);
  const int whole = sets > 0 && many > 0 && length(&c[BACK]) == sets * places && length(&c[WEIGHTS]) == sets * many &&
                    length(&c[BELOW]) / places == sets * many && length(&c[BELOW]) % places == 0 && length(&c[TABLE]) == LOGS &&
                    (!dues || (dues == sets * places && many == 1));
  if (whole) {
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t set = 0; set < sets; set++)
      cut((const int64_t *)c[BELOW].buf + set * many * places, (const double *)c[WEIGHTS].buf + set * many,
          dues ? (const double *)c[DUE].buf + set * places : NULL, c[TABLE].buf, many, places - 1, penalty, c[BEST].buf,
          (int64_t *)c[BACK].buf + set * places);
    Py_END_ALLOW_THREADS
  }
  release(c, NUMBER);
  if (whole) Py_RETURN_NONE;
  PyErr_SetString(PyExc_ValueError, "counts, weights and places do not fit");
  return NULL;
}

typedef struct {
  const double *values, *under, *upto, *knots, *area, *below;
  Py_ssize_t bins, many;
} Reference;

/* Fill in of each CSR row its samples times the area by which its quantile function lies above that of a reference. Of each bin
 * are known its value, the share of the reference below it and the integral of that share up to it; of the reference its knots,
 * the integral up to each and the share up to each. Returns -1 where a row is empty or a bin is none. */
static int gained(const int64_t *indptr, const int64_t *bins, const int64_t *counts, Py_ssize_t entries, Py_ssize_t rows,
                  const Reference *other, double *out) {
  for (Py_ssize_t row = 0; row < rows; row++) {
    const int64_t first = indptr[row], end = indptr[row + 1];
    if (first < 0 || end <= first || end > entries) return -1;
    int64_t total = 0, before = 0;
    for (int64_t at = first; at < end; at++) {
      if (bins[at] < 0 || bins[at] >= other->bins) return -1;
      total += counts[at];
    }
    double sum = 0;
    Py_ssize_t place = 0;
    for (int64_t at = first; at + 1 < end; at++) {
      before += counts[at];
      const double share = (double)before / (double)total;
      const int64_t bin = bins[at], next = bins[at + 1];
      if (!(other->under[next] > share)) continue;
      while (place + 1 < other->many && other->below[place] <= share) place++; /* shares rise within a row */
      const double low = other->values[bin], since = other->knots[place];
      const double upto = since <= low ? other->upto[bin] : other->area[place];
      sum += other->upto[next] - upto - share * (other->values[next] - (since > low ? since : low));
    }
    sum += other->upto[bins[first]];
    out[row] = sum > 0 ? (double)total * sum : 0;
  }
  return 0;
}

static PyObject *excess_rows(PyObject *self, PyObject *args) {
  enum { INDPTR, BINS, COUNTS, VALUES, UNDER, UPTO, KNOTS, AREA, BELOW, OUT, NUMBER };
  PyObject *o[NUMBER];
  Py_buffer c[NUMBER];
  int failed = -1;
  (void)self;
  if (!PyArg_ParseTuple(args, "OOOOOOOOOO", &o[INDPTR], &o[BINS], &o[COUNTS], &o[VALUES], &o[UNDER], &o[UPTO], &o[KNOTS], &o[AREA],
                        &o[BELOW], &o[OUT]))
    return NULL;
  if (columns_of(o, NUMBER, 1, c) != 0) return NULL;
  const Reference other = {c[VALUES].buf, c[UNDER].buf,       c[UPTO].buf,       c[KNOTS].buf,
                           c[AREA].buf,   c[BELOW].buf, length(&c[VALUES]), length(&c[KNOTS])};
  if (length(&c[INDPTR]) == length(&c[OUT]) + 1 && length(&c[BINS]) == length(&c[COUNTS]) && other.many > 0 &&
      length(&c[UNDER]) == other.bins && length(&c[UPTO]) == other.bins && length(&c[AREA]) == other.many &&
      length(&c[BELOW]) == other.many) {
    Py_BEGIN_ALLOW_THREADS
    failed = gained(c[INDPTR].buf, c[BINS].buf, c[COUNTS].buf, length(&c[BINS]), length(&c[OUT]), &other, c[OUT].buf);
    Py_END_ALLOW_THREADS
  }
  release(c, NUMBER);
  if (failed == 0) Py_RETURN_NONE;
  PyErr_SetString(PyExc_ValueError, "rows do not fit their reference");
  return NULL;
}

static PyMethodDef functions[] = {
    {"fio_rows", fio_rows, METH_VARARGS,
     "fio_rows(text, columns, leading, lead, indptr, bins, counts) -> rows, or -1 where the text is not plain\n\n"
     "lead (uint64, 3 a row), indptr (int64, one more than rows), bins (int64) and counts (uint64) are filled in.\n"
     "ValueError where they are too small."},
    {"integer_rows", integer_rows, METH_VARARGS,
     "integer_rows(text, width, columns) -> rows, or -1 where the text is not rows of `width` plain integers\n\n"
     "columns (int64, width x room for rows) is filled in. ValueError where it is too small."},
    {"hdr_rows", hdr_rows, METH_VARARGS,
     "hdr_rows(text, starts, indptr, bins, counts) -> counts, or -1 where a word is cut off or has more than eight bytes\n\n"
     "Row i is the ZigZag LEB128 words text[starts[i]:starts[i + 1]]. indptr, bins and counts (int64) are filled in; the last\n"
     "two must be as long as the text. ValueError where they are not."},
    {"add_rows", add_rows, METH_VARARGS,
     "add_rows(group, indptr, bins, counts, low, width, dense): add CSR rows to rows of `width` bins.\n\n"
     "The first of these bins is `low`. All are int64. ValueError where one is outside."},
    {"rank_rows", rank_rows, METH_VARARGS,
     "rank_rows(indptr, counts, picked, ranks, places): fill in which entry of each picked CSR row holds the sample of its rank.\n\n"
     "All are int64, ranks from 1 on. ValueError where a row is none or holds fewer samples."},
    {"share", share, METH_VARARGS,
     "share(counts, indptr, part, whole, before): fill in the counts of the share part/whole of each CSR row, all int64.\n\n"
     "ValueError where a part is none of its whole."},
    {"stretches", stretches, METH_VARARGS,
     "stretches(ends, latencies, series, labels, every, state, sums, places) -> stretches of 32 operations whose sum it divides\n\n"
     "series (int64) are places in labels (uint64). state (39 words) goes on from call to call; sums and places of the last\n"
     "operation of each are filled in and must be as long as there are operations. ValueError where they are not."},
    {"event_rows", event_rows, METH_VARARGS,
     "event_rows(series, ends, latencies, step, first, known, half, low, width, dense, least, most, spent, indptr, bins, counts)\n\n"
     "-> bins filled in. A cell for each window of `step` from `first` on and each of `known` series, with bins from `low` on:\n"
     "the least and most latency and their sum, and CSR rows, all int64. dense, `width` a cell, is zeros before and after.\n"
     "ValueError where an operation is outside."},
    {"cut_levels", cut_levels, METH_VARARGS,
     "cut_levels(below, weights, due, logs, penalty, best, back): fill in where the cheapest level that ends at each place begins.\n\n"
     "below (int64, sets x counts x places) are sums before each place, weights (sets x counts) those of x log x, due (sets x\n"
     "places, or empty) sums of what was due, logs logarithms from 0 to 2^18; best (places) is scratch, back (int64) sets x places."},
    {"excess_rows", excess_rows, METH_VARARGS,
     "excess_rows(indptr, bins, counts, values, under, upto, knots, area, below, out): fill in the excess of CSR rows.\n\n"
     "values, under and upto are of each bin, knots, area and below of the reference; ValueError where a bin is none of these."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_kernel", NULL, 0, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__kernel(void) { return PyModuleDef_Init(&module); }
