from django.urls import path

from docvqa_site.organizers import (
    closing_views,
    export_views,
    outage_views,
    part_views,
    people_views,
    registration_views,
    run_views,
    team_views,
    track_views,
    views,
)
from docvqa_site.organizers.setup import file_views
from docvqa_site.organizers.setup import views as setup

app_name = "organizers"

urlpatterns = [
    path("", views.desk, name="desk"),
    path("failures/<str:code>/queue/", views.queue_failed, name="queue_failed"),
    path("tracks/new/", setup.new, name="new_track"),
    path("tracks/<slug:slug>/setup/", setup.overview, name="setup"),
    path("tracks/<slug:slug>/setup/preview/", setup.preview, name="setup_preview"),
    path("tracks/<slug:slug>/setup/test/", setup.test, name="setup_test"),
    path("tracks/<slug:slug>/setup/publish/", setup.publish, name="setup_publish"),
    path("tracks/<slug:slug>/setup/discard/", setup.discard, name="setup_discard"),
    path("tracks/<slug:slug>/setup/<slug:name>/", setup.step, name="setup_step"),
    path(
        "tracks/<slug:slug>/invitations/<int:invitation_id>/withdraw/",
        setup.withdraw_invitation,
        name="withdraw_invitation",
    ),
    path(
        "tracks/<slug:slug>/organizers/<int:user_id>/remove/", setup.remove_organizer, name="remove_organizer"
    ),
    path("files/uploads/check", file_views.check, name="check_file"),
    path("files/uploads", file_views.start, name="start_file"),
    path("files/uploads/<uuid:upload_id>/parts", file_views.parts, name="file_parts"),
    path("files/uploads/<uuid:upload_id>/part-urls", file_views.part_urls, name="file_part_urls"),
    path("files/uploads/<uuid:upload_id>/complete", file_views.complete, name="complete_file"),
    path("people/", people_views.people, name="people"),
    path("registrations/", registration_views.registrations, name="registrations"),
    path(
        "registrations/<int:registration_id>/",
        registration_views.decide_registration,
        name="decide_registration",
    ),
    path("invitations/<str:secret>/", setup.invitation, name="invitation"),
    path("tracks/<slug:slug>/", track_views.track, name="track"),
    path("tracks/<slug:slug>/rules/", track_views.rules, name="rules"),
    path("tracks/<slug:slug>/phases/add/", track_views.add_phase, name="add_phase"),
    path("tracks/<slug:slug>/phases/<int:phase_id>/", track_views.phase, name="phase"),
    path("tracks/<slug:slug>/phases/<int:phase_id>/remove/", track_views.remove_phase, name="remove_phase"),
    path("tracks/<slug:slug>/phases/<int:phase_id>/close/", closing_views.close, name="close_phase"),
    path("tracks/<slug:slug>/phases/<int:phase_id>/extend/", outage_views.extend, name="extend"),
    path("outages/", outage_views.overview, name="outages"),
    path("outages/<int:outage_id>/withdraw/", outage_views.withdraw, name="withdraw_outage"),
    path("test-sets/<str:name>/", part_views.test_set, name="test_set"),
    path("runs/", run_views.runs, name="runs"),
    path("runs/<uuid:run_id>/", run_views.run, name="run"),
    path("runs/<uuid:run_id>/evaluate/", run_views.evaluate, name="evaluate"),
    path("runs/<uuid:run_id>/disqualify/", run_views.disqualify_run, name="disqualify"),
    path("runs/<uuid:run_id>/requalify/", run_views.requalify_run, name="requalify"),
    path("runs/<uuid:run_id>/accept-log/", run_views.accept, name="accept_log"),
    path("runs/<uuid:run_id>/appeal/", run_views.answer_appeal, name="answer_appeal"),
    path("runs/<uuid:run_id>/refund/", run_views.refund_slot, name="refund"),
    path("runs/<uuid:run_id>/baseline/", run_views.mark, name="mark"),
    path("runs/<uuid:run_id>/examine/", run_views.examine, name="examine"),
    path("runs/<uuid:run_id>/examinations/", run_views.examinations, name="examinations"),
    path(
        "runs/<uuid:run_id>/examinations/<int:examination_id>/cancel/",
        run_views.cancel,
        name="cancel_examination",
    ),
    path("teams/", team_views.listing, name="teams"),
    path("teams/<int:team_id>/", team_views.team, name="team"),
    path("teams/<int:team_id>/message/", views.message, name="write_to_team"),
    path("teams/<int:team_id>/submissions/", team_views.grant, name="grant_submissions"),
    path("exports/", export_views.exports, name="exports"),
    path("exports/<slug:name>.<slug:kind>", export_views.export, name="export"),
    path("announcement/", views.announcement, name="announcement"),
]
