"""Fields of a size are grouped and named by the one table of fields."""

from app.catalog.fields import SIZE_FIELDS, field_title, short_title
from app.catalog.projections import SIZE_JSON_FIELDS
from app.web.size_fields import in_groups
from app.web.sizes_view import COLUMNS


def test_every_field_is_in_one_group() -> None:
    grouped = [name for names in in_groups(SIZE_FIELDS).values() for name in names]
    assert sorted(grouped) == sorted(SIZE_FIELDS)


def test_every_field_with_a_column_has_a_sentence_and_a_place_in_the_json() -> None:
    columns = {name: spec for name, spec in SIZE_FIELDS.items() if spec.column}
    assert columns.keys() <= set(SIZE_JSON_FIELDS)
    assert [name for name, spec in columns.items() if not spec.sentence] == []


def test_a_name_is_written_alike_on_all_pages() -> None:
    assert field_title("premium_storage") == short_title("premium_storage") == "Premium Storage"
    assert COLUMNS["ultra_disk"].title == field_title("ultra_disk") == "Ultra Disk"
