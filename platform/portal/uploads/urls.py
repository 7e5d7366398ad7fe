from django.urls import URLPattern, URLResolver

app_name = "uploads"
urlpatterns: list[URLPattern | URLResolver] = []
