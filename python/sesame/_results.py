"""Results as lists and dicts that notebooks show as tables."""

_ROWS = 50  # that a notebook shows


def _escape(text):
    import html

    return html.escape(str(text))


def _cell(value):
    if isinstance(value, float):
        text = f"{value:.4f}"
        if 0 <= value <= 1:  # a bar
            text += f' <span style="display:inline-block;height:.6em;width:{6 * value:.2f}em;background:#69c"></span>'
        return f"<td>{text}</td>"
    return f'<td style="text-align:left;white-space:pre-wrap">{_escape(value)}</td>'


def _table(columns, rows, count):
    head = "".join(f"<th>{_escape(name)}</th>" for name in columns)
    body = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows)
    more = f"<p>{count - len(rows)} more</p>" if count > len(rows) else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


class Record(dict):
    """A result: a dict that notebooks show as a table."""

    def _repr_html_(self):
        return _table(("", ""), list(self.items()), len(self))


class Records(list):
    """Results: a list that notebooks show as a table, with the number of the text if each text has several."""

    def _repr_html_(self):
        rows = [(i, row) for i, rows in enumerate(self) for row in (rows if isinstance(rows, list) else [rows])]
        if not rows or not all(isinstance(row, dict) for _, row in rows):
            return None
        nested = any(isinstance(x, list) for x in self)
        columns = list(dict.fromkeys(key for _, row in rows for key in row))
        cells = [([i] if nested else []) + [row.get(key, "") for key in columns] for i, row in rows[:_ROWS]]
        return _table((["text"] if nested else []) + columns, cells, len(rows))


def shown(x):
    """A result of JSON with these classes in place of its dicts and lists of dicts."""
    if type(x) is dict:
        return Record(x)
    if isinstance(x, list) and x and isinstance(x[0], (dict, list)):
        first = x[0]
        if isinstance(first, dict) or first and isinstance(first[0], dict):
            return Records(shown(one) for one in x)
    return x
