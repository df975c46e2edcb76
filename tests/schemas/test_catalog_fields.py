from app.catalog.fields import GPU_FIELDS, SERIES_FIELDS, SIZE_FIELDS
from app.schemas.catalog import GpuOut, SeriesOut
from app.schemas.sizes import SizeOut


def test_every_field_with_a_column_is_in_a_response() -> None:
    assert {name for name, field in SIZE_FIELDS.items() if field.column} <= set(SizeOut.model_fields)
    assert set(SERIES_FIELDS) <= set(SeriesOut.model_fields)
    assert set(GPU_FIELDS) <= set(GpuOut.model_fields)
