"""The audit trail in the administration, and the base classes of read-only and of audited admins."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from django.apps import apps
from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.contrib.admin.views.main import ChangeList
from django.db.models import Model, Q, QuerySet
from django.forms import BaseInlineFormSet, ModelForm
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from typing_extensions import override

from docvqa_site.audit.hiding import hidden_from
from docvqa_site.audit.models import AuditEntry, entries_for, personal, record
from docvqa_site.audit.sentences import described, in_full, titled

# On the page of an object's history.
MOST_SHOWN = 200
HIDDEN = "Decisions on proofs that you may still have to judge, or have a conflict of interest about, aren't listed."

ModelT = TypeVar("ModelT", bound=Model)
ParentT = TypeVar("ParentT", bound=Model)


class ReadOnly:
    """Records that are read in the administration and never edited there."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class WithHistory(admin.ModelAdmin[ModelT]):
    """An admin in which the history of an object is what the audit trail has about it, for those who may read that."""

    class Media:
        css = {"all": ["audit/lists.css"]}

    @override
    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        """Return the list under the name of what it lists, rather than as a request to select something."""
        listed = super().get_changelist_instance(request)
        listed.title = capfirst(str(self.opts.verbose_name_plural))
        return listed

    @override
    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        obj = self.get_object(request, unquote(object_id))
        may_read = request.user.has_perm("audit.view_auditentry")
        if obj is None or not may_read or not self.has_view_or_change_permission(request, obj):
            return super().history_view(request, object_id, extra_context)
        entries = entries_for(request.user).select_related("actor")
        about = entries.filter(object_type=self.opts.label_lower, object_id=str(obj.pk))
        shown = list(about[: MOST_SHOWN + 1])
        context = {
            **self.admin_site.each_context(request),
            "title": f"History: {obj}",
            "opts": self.opts,
            "object": obj,
            "described": described(shown[:MOST_SHOWN], request),
            "more": len(shown) > MOST_SHOWN,
        }
        return TemplateResponse(request, "admin/audited_history.html", context)


class ReadOnlyAdmin(ReadOnly, WithHistory[ModelT]):
    """An admin of records that are never edited."""


class ReadOnlyInline(ReadOnly, admin.TabularInline[ModelT, ParentT]):
    """Records that are never edited, on the page of what they belong to."""

    extra = 0
    can_delete = False


def values_in_full(values: Mapping[str, Any]) -> SafeString:
    """Return values of JSON as a list of terms, without cutting any."""
    return render_to_string("audit/values.html", {"values": in_full(values)})


def in_full_of(field: str) -> Any:
    """Return a function that shows a field of JSON as `values_in_full`, for an admin's read-only fields.

    Any: Django's stubs expect their names.
    """

    @admin.display(description=field, empty_value="–")
    def shown(obj: Any) -> SafeString | None:
        value = getattr(obj, field)
        if not value:
            return None
        return values_in_full(value if isinstance(value, dict) else {field: value})

    shown.__name__ = field
    return shown


class ByFilter(admin.SimpleListFilter):
    """Who acted: most entries are the site's own, about the steps of evaluations."""

    title = "who"
    parameter_name = "by"

    @override
    def lookups(self, _request: HttpRequest, _model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("people", "people"),
            ("staff", "organizers and reviewers"),
            ("you", "you"),
            ("site", "the site"),
        ]

    @override
    def queryset(self, request: HttpRequest, queryset: QuerySet[AuditEntry]) -> QuerySet[AuditEntry]:
        match self.value():
            case "people":
                return queryset.filter(actor__isnull=False)
            case "staff":
                return queryset.filter(actor__is_staff=True)
            case "you":
                return queryset.filter(actor=request.user.pk)
            case "site":
                return queryset.filter(actor__isnull=True)
        return queryset


class InWords(admin.AllValuesFieldListFilter):
    """The values that are there, in the words of the site's pages."""

    @override
    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        for choice in super().choices(changelist):
            yield {**choice, "display": self.in_words(str(choice["display"]))}

    def in_words(self, value: str) -> str:
        """Return an action such as "submission: proof revised"."""
        return value.replace(".", ": ").replace("_", " ")


class TypeInWords(InWords):
    """The types of objects by their names."""

    @override
    def in_words(self, value: str) -> str:
        # With the number of entries, the value is followed by it.
        label, *number = value.split(" ", 1)
        try:
            named = str(apps.get_model(label)._meta.verbose_name)
        except (LookupError, ValueError):
            named = label
        return " ".join([named, *number])


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin[AuditEntry]):
    """The audit trail, newest entry first."""

    list_display = ["at", "sentence", "changes"]
    list_filter = [ByFilter, ("action", InWords), ("object_type", TypeInWords), "at"]
    list_select_related = ["actor"]
    search_fields = ["action", "object_type", "object_id", "actor__email", "actor__name"]
    fields = ("at", "sentence", "changes", "actor", "action", "object_type", "object_id", "readable")
    readonly_fields = ("sentence", "changes", "readable")
    date_hierarchy = "at"
    show_full_result_count = False

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[AuditEntry]:
        return entries_for(request.user, _hidden(request))

    @override
    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        note = {"subtitle": HIDDEN} if _hidden(request) else {}
        return super().changelist_view(request, {**note, **(extra_context or {})})

    @override
    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[AuditEntry], search_term: str
    ) -> tuple[QuerySet[AuditEntry], bool]:
        """Find entries by the titles of submissions, too, which rows show in place of their keys."""
        found, may_repeat = super().get_search_results(request, queryset, search_term)
        if search_term:
            keys = titled(search_term, request)
            found |= queryset.filter(Q(object_id__in=keys) | Q(details__submission__in=keys))
        return found, may_repeat

    @override
    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        """Return the list with what its entries say, of which the page's are looked up at once."""
        listed = super().get_changelist_instance(request)
        rows = described(listed.result_list, request)
        for row in rows:
            row.entry.described = row  # type: ignore[attr-defined]
        listed.result_list = [row.entry for row in rows]
        return listed

    @override
    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        entry = super().get_object(request, object_id, from_field)
        if entry is not None:
            (entry.described,) = described([entry], request)  # type: ignore[attr-defined]
        return entry

    @admin.display(description="what happened")
    def sentence(self, entry: Any) -> SafeString:
        said: SafeString = entry.described.sentence
        return said

    @admin.display(description="values")
    def changes(self, entry: Any) -> SafeString:
        return render_to_string("audit/changes.html", {"changes": entry.described.changes})

    @admin.display(description="details")
    def readable(self, entry: AuditEntry) -> SafeString:
        return values_in_full(entry.readable)


def _hidden(request: Any) -> Q:
    """Return what is hidden from whoever makes the request. A page asks several times, and looks it up once."""
    if not hasattr(request, "hidden_entries"):
        request.hidden_entries = hidden_from(request.user) or Q()
    found: Q = request.hidden_entries
    return found


class AuditedAdmin(WithHistory[ModelT]):
    """An admin whose additions, changes and deletions, inlines included, go into the audit trail with their values.

    The fields `set_once` are written when an object is added, and read-only from then on.

    Attributes:
        personal: The fields that say who somebody is: in entries, they can be erased.
        may_add: Whether objects are added here, by those with the permission.
        may_delete: Whether they are deleted here, likewise.
    """

    set_once: Sequence[str] = ()
    personal: Sequence[str] = ()
    may_add = True
    may_delete = True

    @override
    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.may_add and super().has_add_permission(request)

    @override
    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may_delete and super().has_delete_permission(request, obj)

    @override
    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return [*(self.set_once if obj else ()), *super().get_readonly_fields(request, obj)]

    @override
    def get_prepopulated_fields(self, request: HttpRequest, obj: Any = None) -> dict[str, Any]:
        return {} if obj else dict(super().get_prepopulated_fields(request, obj))

    @override
    def save_model(self, request: HttpRequest, obj: Any, form: "ModelForm[Any]", change: bool) -> None:
        super().save_model(request, obj, form, change)
        _record_form(request, form, "changed" if change else "added", self.personal)

    @override
    def save_formset(
        self,
        request: HttpRequest,
        form: "ModelForm[Any]",
        formset: "BaseInlineFormSet[Any, Any, Any]",
        change: bool,
    ) -> None:
        doomed = [inline.instance for inline in formset.initial_forms if inline in formset.deleted_forms]
        _record_deletions(request, doomed)
        super().save_formset(request, form, formset, change)
        for inline in formset.forms:
            if inline.has_changed() and inline not in formset.deleted_forms:
                _record_form(request, inline, "changed" if inline in formset.initial_forms else "added")

    @override
    def delete_model(self, request: HttpRequest, obj: ModelT) -> None:
        _record_deletions(request, [obj])
        super().delete_model(request, obj)

    @override
    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        # What goes with an object is shown where it alone is deleted.
        return {
            name: action for name, action in super().get_actions(request).items() if name != "delete_selected"
        }


def _record_form(
    request: HttpRequest, form: "ModelForm[Any]", verb: str, personal_fields: Sequence[str] = ()
) -> None:
    """Record the form's object with the old and the new value of each column that was changed.

    The `personal_fields` are those of a person, who is the object.
    """
    obj = form.instance
    columns = {field.name for field in obj._meta.get_fields()}
    values = {
        name: [_plain(form.initial.get(name)), _plain(form.cleaned_data.get(name))]
        for name in form.changed_data
        # A password's two entry fields are not columns and are never recorded.
        if name in columns
    }
    changes = {name: pair for name, pair in values.items() if pair[0] != pair[1]}
    for name in changes.keys() & set(personal_fields):
        changes[name] = [personal(str(value or ""), obj) for value in changes[name]]
    record(_actor(request), f"{obj._meta.model_name}.{verb}", obj, changes=changes)


def _record_deletions(request: HttpRequest, objects: Iterable[Model]) -> None:
    for obj in objects:
        record(_actor(request), f"{obj._meta.model_name}.deleted", obj, was=str(obj))


def _actor(request: HttpRequest) -> Model:
    assert isinstance(request.user, Model)  # noqa: S101  (the admin lets nobody anonymous in)
    return request.user


def _plain(value: object) -> object:
    """Return `value` as JSON knows it: instances as their keys, anything else that JSON doesn't know as text."""
    match value:
        case None | str() | int() | float():
            return value
        case list() | QuerySet():
            return [_plain(item) for item in value]
        case Model():
            return _plain(value.pk)
        case _:
            return str(value)
