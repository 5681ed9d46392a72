import java.io.IOException;
import java.util.List;
import java.util.Map;
import org.apache.lucene.search.Query;
import org.elasticsearch.Build;
import org.elasticsearch.client.internal.node.NodeClient;
import org.elasticsearch.index.mapper.DocumentParserContext;
import org.elasticsearch.index.mapper.FieldMapper;
import org.elasticsearch.index.mapper.MappedFieldType;
import org.elasticsearch.index.mapper.Mapper;
import org.elasticsearch.index.mapper.MapperBuilderContext;
import org.elasticsearch.index.mapper.SourceValueFetcher;
import org.elasticsearch.index.mapper.ValueFetcher;
import org.elasticsearch.index.query.SearchExecutionContext;
import org.elasticsearch.plugins.MapperPlugin;
import org.elasticsearch.rest.BaseRestHandler;
import org.elasticsearch.rest.RestHandler;
import org.elasticsearch.rest.RestRequest;
import org.elasticsearch.rest.RestResponse;
import org.elasticsearch.rest.RestStatus;
import org.elasticsearch.xcontent.XContentBuilder;

/** What the server of Maven Central lacks and tailboard needs: GET /, and fields of type histogram, whose source is kept alone. */
public class RealPlugin extends Major.Handling implements MapperPlugin {
  @Override
  public Map<String, Mapper.TypeParser> getMappers() {
    return Map.of("histogram", new FieldMapper.TypeParser((name, context) -> new Kept.Builder(name)));
  }

  @Override
  List<RestHandler> handlers() {
    return List.of(new Root());
  }

  static class Root extends BaseRestHandler {
    @Override
    public String getName() {
      return "root";
    }

    @Override
    public List<Route> routes() {
      return List.of(new Route(RestRequest.Method.GET, "/"), new Route(RestRequest.Method.HEAD, "/"));
    }

    @Override
    protected RestChannelConsumer prepareRequest(RestRequest request, NodeClient client) {
      return channel -> {
        try (XContentBuilder out = channel.newBuilder()) {
          out.startObject().startObject("version").field("number", Build.current().version()).endObject().endObject();
          channel.sendResponse(new RestResponse(RestStatus.OK, out));
        }
      };
    }
  }

  static class Kept extends FieldMapper {
    Kept(String leaf, MappedFieldType type, BuilderParams params) {
      super(leaf, type, params);
    }

    @Override
    protected boolean supportsParsingObject() {
      return true;
    }

    @Override
    public void parse(DocumentParserContext context) throws IOException {
      context.parser().skipChildren();
      context.addToFieldNames(fieldType().name());
    }

    @Override
    protected void parseCreateField(DocumentParserContext context) {
      throw new UnsupportedOperationException();
    }

    @Override
    public FieldMapper.Builder getMergeBuilder() {
      return new Builder(leafName()).init(this);
    }

    @Override
    protected String contentType() {
      return "histogram";
    }

    static class Builder extends FieldMapper.Builder {
      private final Parameter<Map<String, String>> meta = Parameter.metaParam();

      Builder(String name) {
        super(name);
      }

      public String contentType() {
        return "histogram";
      }

      @Override
      protected Parameter<?>[] getParameters() {
        return new Parameter<?>[] {meta};
      }

      @Override
      public FieldMapper build(MapperBuilderContext context) {
        return new Kept(leafName(), new Type(context.buildFullName(leafName()), meta.getValue()), builderParams(this, context));
      }
    }

    static class Type extends Major.Type {
      Type(String name, Map<String, String> meta) {
        super(name, meta);
      }

      @Override
      public ValueFetcher valueFetcher(SearchExecutionContext context, String format) {
        return SourceValueFetcher.identity(name(), context, format);
      }

      @Override
      public String typeName() {
        return "histogram";
      }

      @Override
      public Query termQuery(Object value, SearchExecutionContext context) {
        throw new IllegalArgumentException("a histogram is not searched for");
      }
    }
  }
}
